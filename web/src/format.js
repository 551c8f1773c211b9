// Numbers for people: three significant digits, whole numbers in groups from a thousand on,
// "–" for what does not exist. The same rules as in the text summary.

export const missing = '–';

const exists = (value) => value !== null && value !== undefined && Number.isFinite(value);

export function grouped(value) {
  return exists(value) ? Math.round(value).toLocaleString('en-US') : missing;
}

export function amount(value) {
  if (!exists(value)) return missing;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 999.5) return grouped(value);
  if (size < 1e-4) return value.toExponential(1);
  return value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(size))));
}

// A part short of the whole, or more than nothing, is not rounded into it.
export function percent(part) {
  if (!exists(part)) return missing;
  if (part < 1 && part > 0.9995) {
    const decimals = Math.min(4, Math.ceil(-Math.log10(1 - part)) - 2);
    return `${Math.min(99.9999, 100 * part).toFixed(decimals)} %`;
  }
  if (part > 0 && part < 0.0005) return '<0.1 %';
  return `${(100 * part).toFixed(1)} %`;
}

export function milliseconds(value) {
  if (!exists(value)) return missing;
  if (value === 0) return '0 ms';
  if (value >= 7.2e6) return `${amount(value / 3.6e6)} h`;
  if (value >= 6e5) return `${amount(value / 6e4)} min`;
  if (value >= 1000) return `${amount(value / 1000)} s`;
  if (value >= 1) return `${amount(value)} ms`;
  return `${amount(value * 1000)} µs`;
}

// A bound as it was asked for: 25 ms, 2 s.
export function bound(value) {
  const digits = (number) => String(Number(number.toPrecision(6)));
  return value >= 1000 ? `${digits(value / 1000)} s` : `${digits(value)} ms`;
}

export const seconds = (value) => milliseconds(exists(value) ? value * 1000 : value);

export function gigabytes(value) {
  if (!exists(value)) return missing;
  if (value >= 1e6) return `${amount(value / 1e6)} PB`;
  if (value >= 1000) return `${amount(value / 1000)} TB`;
  if (value >= 1 || value === 0) return `${amount(value)} GB`;
  if (value >= 1e-3) return `${amount(value * 1e3)} MB`;
  return `${amount(value * 1e6)} kB`;
}

export const unit = (name, format = amount) =>
    (value) => (exists(value) ? `${format(value)} ${name}` : missing);

// For axes: 1.2M, 340k, 0.5.
export function short(value) {
  if (!exists(value)) return '';
  const size = Math.abs(value);
  const trim = (number) => String(Number(number.toPrecision(3)));
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e4) return `${trim(value / 1e3)}k`;
  return trim(value);
}

// For axes: a duration in ms without needless digits: 5 ms, 2 s, 3 min.
export function tick(value) {
  const trim = (number) => String(Number(number.toPrecision(3)));
  if (value >= 3.6e6) return `${trim(value / 3.6e6)} h`;
  if (value >= 6e4 && value % 6e4 === 0) return `${trim(value / 6e4)} min`;
  if (value >= 1000) return `${trim(value / 1000)} s`;
  if (value >= 1) return `${trim(value)} ms`;
  return value === 0 ? '0' : `${trim(value * 1000)} µs`;
}

export function clock(secondsSinceStart) {
  const all = Math.round(secondsSinceStart);
  const two = (value) => String(value).padStart(2, '0');
  const hours = Math.floor(all / 3600);
  const minutes = Math.floor(all / 60) % 60;
  return hours ? `${hours}:${two(minutes)}:${two(all % 60)}` : `${minutes}:${two(all % 60)}`;
}

export function shape({tp, pp, dp, ep}) {
  const degrees = [['TP', tp], ['PP', pp], ['DP', dp], ['EP', ep]].filter(([, degree]) => degree > 1);
  return degrees.length ? degrees.map(([name, degree]) => `${name}${degree}`).join(' ') : '1 GPU';
}

export function billions(parameters) {
  return `${amount(parameters / 1e9)} B`;
}
