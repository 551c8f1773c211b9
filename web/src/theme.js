// Colours live in report.css as custom properties; canvases read them from there, and are told
// when they change: by the button, by the system, and for paper, which has a width of its own.

const listeners = [];
const root = document.documentElement;
const system = window.matchMedia('(prefers-color-scheme: dark)');

export function colour(name) {
  return getComputedStyle(root).getPropertyValue(`--${name}`).trim();
}

export function onThemeChange(listener) {
  listeners.push(listener);
}

const notify = () => listeners.forEach((listener) => listener());

let printing = false;
export const onPaper = () => printing;

let chosen = null;  // null: as the system
function apply(theme) {
  if (theme === null) root.removeAttribute('data-theme');
  else root.setAttribute('data-theme', theme);
  notify();
}

export function isDark() {
  return (root.getAttribute('data-theme') ?? (system.matches ? 'dark' : 'light')) === 'dark';
}

export function toggleTheme() {
  chosen = isDark() ? 'light' : 'dark';
  apply(chosen);
}

system.addEventListener('change', notify);
window.addEventListener('beforeprint', () => {
  printing = true;
  apply('light');
});
window.addEventListener('afterprint', () => {
  printing = false;
  apply(chosen);
});
