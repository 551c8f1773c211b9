#!/bin/sh
# Builds web/dist/report.js and report.css, which the binary carries inside (docs/decisions/0005).
# Needs Node 18 or newer with npm, and an npm registry the first time. Does nothing when
# the bundle is newer than its sources.
set -eu
cd "$(dirname "$0")"

newest=dist/report.js
if [ -f "$newest" ] && [ -f dist/report.css ] &&
   [ -z "$(find src build.sh package.json package-lock.json -newer "$newest")" ]; then
  exit 0
fi

command -v npm >/dev/null 2>&1 || {
  echo "web/build.sh: npm is missing; on Debian: apt-get install --no-install-recommends nodejs npm" >&2
  exit 1
}
if [ ! -f node_modules/.package-lock.json ] ||
   [ package-lock.json -nt node_modules/.package-lock.json ]; then
  npm ci --no-audit --no-fund --loglevel=error
fi

# The licence of what is bundled travels with it.
licence="/*! Bundled: uPlot.
$(cat node_modules/uplot/LICENSE)
*/"
rm -rf dist.partial
node_modules/.bin/esbuild src/main.js --bundle --minify --format=iife --target=es2020 \
  --legal-comments=inline --banner:js="$licence" --log-level=warning --outfile=dist.partial/report.js
node_modules/.bin/esbuild src/report.css --bundle --minify --target=es2020,chrome100,firefox100,safari15 \
  --log-level=warning --outfile=dist.partial/report.css
if grep -qi '</script' dist.partial/report.js || grep -qi '</style' dist.partial/report.css; then
  echo "web/build.sh: the bundle would end the element that carries it" >&2
  exit 1
fi
mkdir -p dist
mv dist.partial/report.css dist/report.css
mv dist.partial/report.js dist/report.js  # last: the time stamp that is compared
rmdir dist.partial
