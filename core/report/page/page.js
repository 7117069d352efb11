'use strict';
// Draws a page from the JSON in it. Texts become text nodes and attributes, never HTML.

const svgSpace = document.querySelector('template').content.firstChild.namespaceURI;
const svgTags = ['svg', 'line', 'text', 'path', 'circle', 'title'];

// Children that are null or '' are left out.
function el(tag, attributes, ...children) {
  const node = svgTags.includes(tag) ? document.createElementNS(svgSpace, tag)
                                     : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value != null) node.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child != null && child !== '') node.append(child);
  }
  return node;
}

const softNote = text => text ? el('p', {class: 'soft'}, text) : null;

// ---- figures

const extremes = values => values.reduce(
    ([least, most], value) => [Math.min(least, value), Math.max(most, value)],
    [Infinity, -Infinity]);

const percent = (share, digits = 1) => share == null ? '–' : `${(100 * share).toFixed(digits)} %`;

// As printf's %.4g.
function general(value, digits = 4) {
  const [mantissa, power] = value.toExponential(digits - 1).split('e').map(Number);
  if (power >= -4 && power < digits) return String(Number(value.toPrecision(digits)));
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}

// ---- parts of pages

const left = text => el('div', {class: 'left'}, text);
const list = lines => el('ul', null, lines.map(line => el('li', null, line)));
const png = (data, attributes) =>
    el('img', {alt: '', src: `data:image/png;base64,${data}`, ...attributes});

// A bar of this share (0 to 1) of its cell, behind a text.
function bar(share, text) {
  const width = 5 * Math.min(1, Math.max(0, share));
  return el('span', {class: 'barbox'}, text,
            el('span', {class: 'bar', style: `width:${width.toFixed(2)}em`}));
}

// Rows of texts or nodes. `sorts`: by a click on a heading; by the next click the other way round.
function table(heading, rows, sorts = false) {
  const body = el('tbody', null, rows.map(
      row => el('tr', null, row.map(cell => el('td', null, cell)))));
  const cells = heading.map(cell => el('th', null, cell));
  if (sorts) cells.forEach((cell, column) => cell.addEventListener('click', sorter(body, column)));
  return el('div', {class: 'scroll'},
            el('table', sorts ? {class: 'sort', title: 'a heading sorts'} : null,
               el('thead', null, el('tr', null, cells)), body));
}

function sorter(body, column) {
  let direction = column > 0 ? 1 : -1;
  const text = row => row.cells[column].textContent;
  const compare = (a, b) => {
    const difference = parseFloat(a) - parseFloat(b);
    return isNaN(difference) ? a.localeCompare(b, undefined, {numeric: true}) : difference;
  };
  return () => {
    direction = -direction;
    body.append(...[...body.rows].sort((a, b) => direction * compare(text(a), text(b))));
  };
}

// A picture that a click shows large.
function thumbnail(data, name) {
  const button = el('button', {class: 'open', title: name}, png(data, {class: 'thumb'}));
  button.addEventListener('click', () => {
    const dialog = el('dialog', null, png(data), el('p', null, name));
    document.body.append(dialog);
    dialog.addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => dialog.remove());
    dialog.showModal();
  });
  return button;
}

// ---- charts

const frame = {width: 540, height: 250, left: 54, right: 526, top: 10, bottom: 216};

// Begins and ends at multiples of 1, 2 or 5 times a power of ten.
function roundAxis(low, high) {
  if (!(high > low)) {
    const room = high == 0 ? 1 : Math.abs(high) / 2;
    low -= low == 0 ? 0 : room;
    high += room;
  }
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find(factor => factor * power >= rough) ?? 10);
  return {low: Math.floor(low / step + 1e-9) * step, high: Math.ceil(high / step - 1e-9) * step,
          step};
}

// From one power of ten to another.
function logAxis(low, high) {
  const first = Math.floor(Math.log10(low) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(high) - 1e-9));
  return {low: 10 ** first, high: 10 ** last, isLog: true};
}

// The first losses of a line may be far above its others, which would then be one flat line.
function upperEnd({points}) {
  const values = points.map(point => point[1]).sort((a, b) => a - b);
  const most = values.at(-1), usual = values[Math.floor((values.length - 1) * 3 / 4)];
  return usual > 0 && most > 10 * usual ? 3 * usual : most;
}

// Lines that lie far apart need a logarithmic axis, or all but one would be flat.
function valueAxis(lines, shares, fromZero) {
  let [least, most] = extremes(lines.flatMap(line => line.points.map(point => point[1])));
  if (!shares) {
    const [nearest, farthest] = extremes(lines.map(upperEnd));
    const isApart = nearest > 0 && farthest > 20 * nearest && least > 1e-5 * farthest;
    if (isApart && !fromZero) return logAxis(least, most);
    most = farthest;
  }
  if (least > 0 && (fromZero || least < most / 2)) least = 0;
  return roundAxis(least, most);
}

function marksOf({low, high, step, isLog}) {
  const factor = isLog ? 10 ** Math.ceil(Math.log10(high / low) / 6) : 1;
  const place = i => isLog ? low * factor ** i : low + i * step;
  const marks = [];
  while (place(marks.length) <= high + (isLog ? 1e-9 * high : step / 2)) {
    marks.push(place(marks.length));
  }
  return marks;
}

const placeOf = ({isLog}, value) => isLog ? Math.log10(value) : value;
const shareOf = (axis, value) => {
  const [low, high] = [placeOf(axis, axis.low), placeOf(axis, axis.high)];
  return Math.min(1, Math.max(0, (placeOf(axis, value) - low) / (high - low)));
};
const acrossOf = (axis, value) => frame.left + (frame.right - frame.left) * shareOf(axis, value);
const heightOf = (axis, value) => frame.bottom - (frame.bottom - frame.top) * shareOf(axis, value);

function drawAxes(x, y, numberText) {
  const marks = [];
  for (const value of marksOf(y)) {
    const at = heightOf(y, value);
    marks.push(
        el('line', {class: 'grid', x1: frame.left, x2: frame.right, y1: at, y2: at}),
        el('text', {x: frame.left - 6, y: at + 4, 'text-anchor': 'end'}, numberText(value)));
  }
  for (let i = 0; x.low + i * x.step <= x.high + x.step * 1e-6; ++i) {
    const value = x.low + i * x.step;
    marks.push(el('text', {x: acrossOf(x, value), y: frame.bottom + 15, 'text-anchor': 'middle'},
                  general(value)));
  }
  marks.push(el('text', {x: frame.right, y: frame.height - 4, 'text-anchor': 'end'}, 'epoch'));
  return marks;
}

function drawLine(line, x, y, numberText) {
  const stroke = `var(--s${line.color % 8})`;
  const places = line.points.map(point => [acrossOf(x, point[0]), heightOf(y, point[1])]);
  const path = places.map(place => place.map(value => value.toFixed(1)).join(' ')).join('L');
  const hasDots = line.dotted || (!line.faint && places.length <= 60);
  const dots = !hasDots ? [] : places.map(([at, up], i) => {
    const [epoch, value] = line.points[i];
    return el('circle', {cx: at, cy: up, r: 2.6, fill: stroke},
              el('title', null, `${line.name}, epoch ${general(epoch)}: ${numberText(value)}`));
  });
  if (line.dotted) return dots;
  return [el('path', {class: line.faint ? 'faint' : null, stroke, d: `M${path}`}), ...dots];
}

function chart({title, shares, fromZero, lines}) {
  const numberText = value =>
      shares ? `${general(100 * value)} %` : general(Math.abs(value) < 1e-12 ? 0 : value);
  const points = lines.flatMap(line => line.points);
  const ys = points.map(point => point[1]);
  const [first, last] = extremes(points.map(point => point[0]));
  const x = roundAxis(Math.min(0, first), last);
  if (last > x.low) x.high = last;  // no room after the last point
  const y = valueAxis(lines, shares, fromZero);
  const above = ys.filter(value => value > y.high + 1e-9 * Math.abs(y.high));
  const key = lines.map(line => {
    const faint = line.faint ? ';opacity:.4' : '';
    return el('span', null, el('i', {style: `background:var(--s${line.color % 8})${faint}`}),
              line.name);
  });
  return el('figure', null, el('figcaption', null, y.isLog ? `${title} (logarithmic)` : title),
            el('svg', {viewBox: `0 0 ${frame.width} ${frame.height}`, role: 'img',
                       'aria-label': title},
               drawAxes(x, y, numberText), lines.flatMap(line => drawLine(line, x, y, numberText))),
            el('div', {class: 'key'}, key),
            softNote(above.length == 0 ? '' :
                `At the upper edge: ${above.length} of ${ys.length} points, up to ` +
                `${numberText(extremes(above)[1])}.`));
}

// Of charts [title, shares, lines, fromZero] with lines [name, points, color, faint, dotted] those
// that have points. `shares`: y is 0 to 1, shown as 0 to 100 %. The points are [epoch, value].
function charts(all, note) {
  const drawn = all.flatMap(([title, shares, some, fromZero]) => {
    const lines = some.filter(line => line[1]?.length)
                      .map(([name, points, color, faint, dotted]) =>
                               ({name, points, color, faint, dotted}));
    return lines.length ? [chart({title, shares, fromZero, lines})] : [];
  });
  return el('div', {class: 'charts'},
            drawn.length ? drawn : softNote(note));
}

// What the columns top1 and top5 are of runs that learn several labels or numbers.
const metricText = (task, value) =>
    value == null ? '–' : task == 'values' ? general(value) : percent(value, 2);

function runCharts({train = {}, epoch = {}, val = {}}, {task, metrics}, plannedRates, note) {
  const [first, second] = metrics;
  const ofTask = task == 'classes' ? [
    ['Accuracy', true, [['training', epoch.top1, 0], ['validation', val.top1, 1],
                        ['validation, among the first five', val.top5, 2]]],
  ] : task == 'labels' ? [
    [`${first}, ${second}`, true, [[`validation ${first}`, val.top1, 1],
                                   [`validation ${second}`, val.top5, 2]]],
  ] : [
    [first, false, [[`validation ${first}`, val.top1, 1]]],
    [second, false, [[`validation ${second}`, val.top5, 2]]],
  ];
  return charts([
    ['Loss', false, [['training, each step', train.loss, 0, true], ['training', epoch.loss, 0],
                     ['validation', val.loss, 1]]],
    ...ofTask,
    // The steps that were written down are too few to draw a warm-up by.
    ['Learning rate', false, [['planned', plannedRates, 3],
                              ['of some steps done', train.rate, 1, false, plannedRates?.length > 0]]],
    ['Seconds for each epoch, with its validation', false, [['seconds', epoch.seconds, 4]], true],
  ], note);
}

function comparedCharts(runs, metric, areShares) {
  const figures = [
    [`Validation ${metric}`, areShares, 'val', 'top1'], ['Validation loss', false, 'val', 'loss'],
    ['Training accuracy', true, 'epoch', 'top1'], ['Training loss', false, 'epoch', 'loss'],
    ['Learning rate', false, 'train', 'rate'],
    ['Seconds for each epoch, with its validation', false, 'epoch', 'seconds', true],
  ];
  return charts(figures.map(([title, shares, split, figure, fromZero]) => [
    title, shares, runs.map(({name, curves}, number) => [name, curves[split]?.[figure], number]),
    fromZero,
  ]), '');
}

// ---- parts about a data set

function splitTable(splits) {
  const hasBytes = splits.some(split => split.bytes);
  const rows = splits.map(split => {
    const [least, median, most] = split.shorter_side;
    return [split.name, split.images, split.damaged,
            ...(hasBytes ? [split.bytes] : []),
            most > 0 ? `${least} to ${most}, median ${median}` : '',
            Object.entries(split.formats).map(([name, count]) => `${count} ${name}`).join(', ')];
  });
  return table(['split', 'images', 'damaged', ...(hasBytes ? ['size'] : []), 'shorter side',
                'formats'], rows);
}

// The damaged images of a split by reason.
function damageList(split) {
  if (split.damage.length == 0) return el('p', null, `${split.name}: no image is damaged.`);
  return el('ul', null, split.damage.map(
      ({count, reason, example}) => el('li', {class: 'bad'}, `${split.name}: ${count} × ${reason} (as `,
                                       el('code', null, example), ')')));
}

// ---- which class is taken for which

// Rows are true classes, columns predicted ones.
function matrix({classes, counts}) {
  const cell = (count, row, column) => {
    if (count == 0) return el('td');
    const share = count / Math.max(1, classes[row].images);
    // Few mistakes are to be seen, too.
    const strength = row == column ? 0.15 + 0.6 * share : 0.12 + 0.75 * Math.sqrt(share);
    return el('td', {class: row == column ? 'g' : 'b', title: percent(share),
                     style: `--v:${Math.min(0.85, strength).toFixed(2)}`}, count);
  };
  const heading = el('tr', null, el('th'), classes.map(
      ({name}) => el('th', {class: 'up', title: name}, el('div', null, name))));
  const rows = counts.map((line, row) => el(
      'tr', null, el('th', {title: classes[row].name}, classes[row].name),
      line.map((count, column) => cell(count, row, column))));
  return el('div', {class: 'scroll'},
            el('table', {class: 'matrix', style: `--n:${classes.length}`},
               el('tbody', null, heading, rows)));
}

function confusion({whole, picture, block, pairs, groups}) {
  if (whole) {
    return [el('p', null, 'Rows are the true classes, columns the predicted ones; classes that ' +
                          'are confused are next to each other.'), matrix(whole)];
  }
  const points = block > 1 ? `; each point is ${block} x ${block} classes` : '';
  return [
    el('p', null, 'True classes downwards, predicted classes to the right, those that are ' +
                  `confused next to each other${points}. Hits are blue, mistakes red.`),
    png(picture, {class: 'heat', alt: 'confusion matrix'}),
    pairs.length ? [el('h3', null, 'Most confused pairs'),
                    table(['class', 'taken for', 'images', 'the other way round'], pairs, true)]
                 : [],
    groups.length ? [el('h3', null, 'Groups of classes that are confused'), groups.map(matrix)]
                  : [],
  ].flat(2);
}

function classTable({rows, has_training: hasTraining, of}) {
  const heading = ['class', ...(hasTraining ? ['to learn from'] : []), 'images', left('recall'),
                   left('precision'), 'F1', 'most often taken for'];
  const cells = rows.map(row => [
    row.name, ...(hasTraining ? [row.training] : []), row.images,
    bar(row.recall ?? 0, percent(row.recall)), bar(row.precision ?? 0, percent(row.precision)),
    percent(row.f1), row.taken_for ? `${row.taken_for} (${row.times})` : '',
  ]);
  return [el('div', {class: 'tall'}, table(heading, cells, true)),
          of > rows.length
              ? el('p', {class: 'soft'},
                   `The ${rows.length} classes of the lowest F1, of ${of}.`) : null];
}

function judgedPicture(one) {
  // The end of a path says more than its beginning.
  const name = one.name.length > 22 ? one.name.slice(one.name.lastIndexOf('/') + 1) : one.name;
  const letters = [...name];
  return el('div', {class: 'picture'},
            el('div', {class: 'both'}, png(one.png, {class: one.small ? 'small' : null}),
               one.map ? png(one.map, {class: 'map'}) : null),
            one.probability == null ? '' : `${percent(one.probability)} `,
            el('b', null, one.predicted),
            one.label == null ? [] : [el('br'), `instead of ${one.label}`], el('br'),
            el('span', {class: 'soft', title: one.name},
               letters.length > 80 ? `${letters.slice(0, 80).join('')}…` : name));
}

// Several labels, or numbers.
function targetTable({targets, are_values: areValues}) {
  const number = value => value == null ? '–' : general(value);
  if (areValues) {
    return table(['value', 'mean absolute error', 'R²'], targets.map(
        one => [one.name, number(one.mean_absolute_error), number(one.r2)]), true);
  }
  const rows = targets.map(one => [
    one.name, one.images, bar(one.average_precision ?? 0, percent(one.average_precision)),
    bar(one.recall ?? 0, percent(one.recall)), bar(one.precision ?? 0, percent(one.precision)),
    percent(one.f1),
  ]);
  return table(['label', 'images', left('average precision'), left('recall'), left('precision'),
                'F1'], rows, true);
}

function findings(found, title = null) {
  if (found.targets) {
    return [
      el('h2', null, title ?? (found.are_values ? 'Values' : 'Labels')),
      el('p', null, `Of the ${found.judged}: ${found.samples} images.`),
      softNote(found.note),
      el('div', {class: 'tall'}, targetTable(found)),
    ];
  }
  return [
    el('h2', null, title ?? 'Which class is taken for which'),
    el('p', null, `Of the ${found.judged}: ${found.right} of ${found.samples} images are ` +
                  'recognized.'),
    softNote(found.note), confusion(found.confusion), el('h2', null, 'Classes'),
    classTable(found.classes),
    found.pictures.map(({title, cards}) => [
      el('h2', null, title), softNote(found.pictures_note),
      el('div', {class: 'pictures'}, cards.map(judgedPicture)),
    ].flat()),
  ].flat(2);
}

// ---- the page of a run

function tiles({best, progress, task, metrics}) {
  const when = `after ${general(best?.epochs ?? 0, 3)} ${best?.epochs == 1 ? 'epoch' : 'epochs'}`;
  const all = [];
  if (best?.top1 != null) {
    all.push([metricText(task, best.top1),
              `${task == 'classes' ? 'best accuracy' : metrics[0]}, ${when}`]);
  }
  if (best?.loss != null) all.push([general(best.loss), `validation loss, ${when}`]);
  if (progress) {
    const {steps, all_steps: allSteps, epochs, all_epochs: allEpochs} = progress;
    all.push([`${epochs} of ${allEpochs}`, `epochs (${steps} of ${allSteps} steps)`]);
    if (progress.time) all.push([progress.time, 'for the epochs done']);
    if (progress.images_per_second != null) {
      all.push([progress.images_per_second.toFixed(0), 'images/s in the last epoch']);
    }
  }
  return el('div', {class: 'tiles'}, all.map(
      ([value, what]) => el('div', {class: 'tile'}, el('b', null, value),
                            el('span', null, what))));
}

// ---- the pages

const pages = {
  run: data => {
    const code = text => el('code', null, text);
    const tests = data.evaluations.map(
        test => [test.epoch, test.step, test.loss == null ? '' : test.loss.toFixed(4),
                 metricText(data.task, test.top1), metricText(data.task, test.top5), test.best ? '●' : '']);
    const source = data.source == null ? [] : [code(data.source), ': '];
    return [
      el('p', null, 'Net ', code(data.net),
         data.source == null ? ', imported: '
                             : [' on ', code(data.source), `: ${data.images} training images of `],
         `${data.classes} ${data.task}.`),
      tiles(data),
      softNote(data.phases),
      runCharts(data.curves, data, data.planned_rates,
                data.source == null ? 'The weights were imported, not trained here.' : ''),
      tests.length == 0 ? null : el(
          'details', null, el('summary', null, 'The evaluations as a table'),
          el('div', {class: 'tall'},
             table(['epoch', 'step', 'loss',
                    ...(data.task == 'classes' ? ['accuracy', 'first five'] : data.metrics),
                    'best so far'], tests))),
      data.advice.length ? [el('h2', null, 'What to try next'), list(data.advice)] : [],
      data.findings ? findings(data.findings) : [],
      data.tests.map(test => findings(test, 'Test of other images')),
      data.splits.length == 0 ? [] : [
        el('h2', null, 'Data'),
        el('p', null, source,
           `${data.classes} ${data.task}, read by ${data.type}. Sizes and formats are those of some ` +
               'evenly spaced images; ', code('tandem data'),
           ' reads all of them, and finds images that occur twice.'),
        splitTable(data.splits),
        ...data.splits.filter(split => split.damage.length > 0).map(damageList),
        data.suggestions.length ? list(data.suggestions) : null,
      ],
      el('h2', null, 'Options and versions'),
      el('p', null, `Tandem ${data.version}, plugin ABI ${data.abi}.`,
         data.source == null
             ? '' : ' Run again with the same options and seed, it gives the same weights.'),
      el('details', null,
         el('summary', null, 'Options, with what was chosen'),
         table(['option', left('value')],
               data.options.map(([name, value]) => [name, left(value)]))),
    ];
  },
  compare: ({runs, options, folds, metric, are_shares: areShares}) => [
    folds.length ? [
      el('h2', null, 'All folds'),
      table(['figure', 'mean ± deviation', 'folds'],
            folds.map(([name, text, count]) => [name, text.replace('+-', '±'), count])),
    ] : [],
    el('h2', null, 'Best evaluations'),
    table(['run', metric, 'validation loss', 'after epochs', 'epochs done', 'time', 'images/s'],
          runs.map(run => run.best), true),
    el('h2', null, 'Curves'), comparedCharts(runs, metric, areShares), el('h2', null, 'Options that differ'),
    options.length ? table(['option', ...runs.map(run => run.best[0])], options)
                   : el('p', null, 'None.'),
  ],
  data: data => {
    const doubled = ({count, list: some}, where) => count == 0 ? [] : [
      el('h2', null, `${count} image${count == 1 ? '' : 's'} ${where}`),
      el('ul', {class: 'doubled'}, some.map(one => el(
          'li', null, one.png ? thumbnail(one.png, one.image) : null,
          el('span', null, el('code', null, one.image), ` (${one.split}, ${one.class}) = `,
             el('code', null, one.other_image), ` (${one.other_split}, ${one.other_class})`)))),
    ];
    const train = data.splits[0].class_counts, [, most] = extremes([1, ...train]);
    const pictures = data.classes.map(() => []);
    for (const one of data.thumbnails) pictures[one.label]?.push(thumbnail(one.png, one.name));
    const range = ({least, mean, most}) =>
        `${general(least)} to ${general(most)}, mean ${general(mean)}`;
    const classes = data.task == 'values' ? data.classes.map((name, c) => [
      name, ...data.splits.map(split => range(split.ranges[c])), '', '',
    ]) : data.classes.map((name, c) => [
      name, ...data.splits.map(split => split.class_counts[c]), bar(train[c] / most, ''),
      left(pictures[c])]);
    return [
      el('p', null, `${data.classes.length} ${data.task}, read by ${data.type}.`),
      data.suggestions.length ? [el('h2', null, 'Suggestions'), list(data.suggestions)] : [],
      el('h2', null, 'Splits'), splitTable(data.splits),
      el('h2', null, 'Damaged images'), data.splits.map(damageList),
      doubled(data.leaks, 'in two splits'),
      doubled(data.conflicts, data.task == 'classes' ? 'in two classes' : 'with different labels'),
      el('h2', null, {classes: 'Classes', labels: 'Labels', values: 'Values'}[data.task]),
      el('div', {class: 'classes'},
         table([{classes: 'class', labels: 'label', values: 'value'}[data.task], ...data.splits.map(split => split.name), '', ''], classes)),
    ];
  },
};

const data = JSON.parse(document.getElementById('data').textContent);
document.querySelector('h1').textContent = document.title;
document.querySelector('main').append(
    ...pages[data.page](data).flat(2).filter(node => node != null));
