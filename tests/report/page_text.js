'use strict';
// Runs the script of a page on a document that has only what the script uses, and prints the page's
// text: a line for each paragraph, heading, cell and item. Usage: node page_text.js PAGE. An
// exception of the script, or something that the document lacks, ends it with another exit code.

const fs = require('fs');
const vm = require('vm');
const page = fs.readFileSync(process.argv[2], 'utf8');
const between = (text, begin, end) => {
  const from = text.indexOf(begin) + begin.length;
  return text.slice(from, text.indexOf(end, from));
};

class Node {
  constructor(tag, text = '') {
    this.tag = tag;
    this.own = text;
    this.children = [];
    this.attributes = {};
    this.listeners = {};
  }
  append(...nodes) {
    for (const node of nodes) {
      if (node === undefined || node === null) throw new Error(`${this.tag}: appends ${node}`);
      this.children.push(node instanceof Node ? node : new Node('#text', String(node)));
    }
  }
  setAttribute(name, value) {
    if (/NaN|undefined/.test(String(value))) throw new Error(`${this.tag}: ${name}=${value}`);
    this.attributes[name] = String(value);
  }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  get textContent() { return this.own + this.children.map(one => one.textContent).join(''); }
  set textContent(text) { this.children = []; this.own = text; }
  get rows() { return this.children.filter(one => one.tag == 'tr'); }
  get cells() { return this.children.filter(one => ['td', 'th'].includes(one.tag)); }
}

const main = new Node('main'), title = new Node('h1');
const document = {
  title: between(page, '<title>', '</title>'),
  createElement: tag => new Node(tag),
  createElementNS: (space, tag) => new Node(tag),
  querySelector: what => what == 'template'
      ? {content: {firstChild: {namespaceURI: 'svg'}}} : what == 'h1' ? title : main,
  getElementById: () =>
      ({textContent: between(page, '<script id=data type="application/json">', '</script>')}),
};
const script = page.slice(page.lastIndexOf('<script>') + 8, page.lastIndexOf('</script>'));
vm.runInNewContext(script, {document});

const lines = [];
const ends = new Set(['p', 'h1', 'h2', 'h3', 'tr', 'li', 'figcaption', 'summary', 'div', 'figure']);
const has = node => ends.has(node.tag) || node.children.some(has);
function print(node) {
  if (node.tag == 'tr') {
    lines.push(node.children.map(one => one.textContent).join(' | '));
    return;
  }
  if (!node.children.some(has)) {
    lines.push(node.textContent);
    return;
  }
  let line = '';  // of texts between blocks
  for (const child of node.children) {
    if (!has(child)) {
      line += child.textContent;
      continue;
    }
    lines.push(line);
    line = '';
    print(child);
  }
  lines.push(line);
}
print(title);
print(main);
// A click sorts each table that can be sorted.
const all = node => [node, ...node.children.flatMap(all)];
for (const heading of all(main).filter(one => one.tag == 'th')) heading.listeners.click?.();
console.log(lines.filter(line => line.trim()).join('\n'));
