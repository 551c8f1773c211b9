// Elements and figures. A figure on the page is written by `figure`, which leaves the key and
// the value of summary.json beside it, so that a test can compare what is shown with what is.

export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'style') element.style.cssText = value;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// `key` is a path into summary.json, e.g. "pools.0.kv_used_mean".
export function figure(data, key, format) {
  const value = key.split('.').reduce((at, step) => (at === null ? null : at[step]), data.summary);
  const raw = value === null ? 'null' : String(value);
  return h('span', {class: 'figure', 'data-key': key, 'data-value': raw}, format(value));
}

// `short` names it in the list of sections at the top.
export function section(id, short, title, lead, ...content) {
  return h('section', {id, 'data-short': short, 'aria-labelledby': `${id}-title`},
           h('h2', {id: `${id}-title`}, title), lead && h('p', {class: 'lead'}, lead), content);
}

// Rows of cells; cells that are numbers or figures stand to the right.
export function table(caption, heads, rows, options = {}) {
  const cell = (content, index, tag, scope) =>
      h(tag, {class: index >= (options.left ?? 1) ? 'number' : null, scope}, content);
  return h('div', {class: 'scroll', tabindex: options.wide ? '0' : null,
                   role: options.wide ? 'region' : null,
                   'aria-label': options.wide ? caption : null},
           h('table', {class: options.class},
             h('caption', {class: options.caption ? null : 'unseen'}, caption),
             h('thead', {}, h('tr', {}, heads.map((head, i) => cell(head, i, 'th', 'col')))),
             h('tbody', {}, rows.map((row) => h('tr', {}, row.map(
                 (content, i) => cell(content, i, i === 0 ? 'th' : 'td', i === 0 ? 'row' : null)))))));
}

// A table that is only built when it is opened: the numbers behind a chart.
export function dataTable(caption, heads, rowsOf, options = {}) {
  const details = h('details', {class: 'data'}, h('summary', {}, options.label ?? 'Data table'));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1)
      details.append(table(caption, heads, rowsOf(), {...options, wide: true}));
  });
  return details;
}
