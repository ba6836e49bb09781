"use strict";
// What moves on the page: tables that sort, figures drawn from the JSON beside them, a light version on paper.

const NEXT_ORDER = { none: "ascending", ascending: "descending", descending: "none" };
const PAPER_WIDTH = 640;
const CONFIG = { displayModeBar: false, displaylogo: false, showLink: false, plotlyServerURL: "", responsive: true };

function makeSortable(table) {
  const [body] = table.tBodies;
  const written = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const sortBy = (head, column) => {
    const order = NEXT_ORDER[head.getAttribute("aria-sort") ?? "none"];
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    if (order !== "none") head.setAttribute("aria-sort", order);
    body.append(...(order === "none" ? written : sorted(written, column, head.dataset.kind, order)));
  };
  heads.forEach((head, column) =>
    head.querySelector("button").addEventListener("click", () => sortBy(head, column)));
}

function sorted(rows, column, kind, order) {
  const keyed = rows.map((row) => ({ row, key: sortKey(row.cells[column], kind) }));
  const sign = order === "ascending" ? 1 : -1;
  keyed.sort((one, two) => (one.key === null) - (two.key === null) || sign * compare(one.key, two.key));
  return keyed.map(({ row }) => row);
}

function sortKey(cell, kind) {
  if (kind === "text") return cell.textContent.trim() || null;
  return "value" in cell.dataset ? Number(cell.dataset.value) : null;
}

function compare(one, two) {
  return typeof one === "string" ? one.localeCompare(two, "en", { numeric: true }) : one - two;
}

// Plotly reads a little markup and %{templates} in its labels; here every text is meant as it is written.
const plain = (text) => text.replace(/[&<>%]/g, (letter) => `&#${letter.charCodeAt(0)};`);

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function curves(figure, { xLabel, lines }) {
  const shown = [...figure.querySelectorAll(".legend input")].map((input) => input.checked);
  const styles = [...figure.querySelectorAll(".swatch")].map((swatch) => getComputedStyle(swatch));
  const traces = lines.map((line, index) => {
    const { stroke, strokeDasharray, strokeWidth } = styles[index];
    const common = { type: "scatter", mode: "lines", legendgroup: String(index), visible: shown[index] };
    const dash = strokeDasharray === "none" ? "solid" : strokeDasharray;
    return [
      { ...common, ...outline(line), fill: "toself", fillcolor: faint(stroke), line: { width: 0 }, hoverinfo: "skip",
        showlegend: false },
      { ...common, mode: line.x.length > 1 ? "lines" : "markers", x: line.x, y: line.mean, text: line.texts, name: plain(line.label), hovertemplate: "%{text}",
        line: { color: stroke, width: parseFloat(strokeWidth), dash } },
    ];
  });
  // All bands lie beneath all lines, and the strongest line lies on top.
  const strokes = traces.map(([, line]) => line).sort((one, two) => one.line.width - two.line.width);
  const data = [...traces.map(([band]) => band), ...strokes];
  const xaxis = { unifiedhovertitle: { text: `${plain(xLabel)} %{x}` }, spikecolor: colour("muted"), spikethickness: 1,
    spikedash: "solid" };
  // A finger that starts on a figure means to scroll the page.
  const dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
  return { data, layout: { hovermode: "x unified", dragmode, xaxis } };
}

const faint = (rgb) => rgb.replace("rgb(", "rgba(").replace(")", ", .15)");

// The band as closed shapes, one for each stretch without a gap.
function outline({ x, low, high }) {
  const shape = { x: [], y: [] };
  let stretch = [];
  const close = () => {
    if (stretch.length) {
      const back = [...stretch].reverse();
      shape.x.push(...stretch.map((i) => x[i]), ...back.map((i) => x[i]), null);
      shape.y.push(...stretch.map((i) => high[i]), ...back.map((i) => low[i]), null);
    }
    stretch = [];
  };
  x.forEach((_, i) => (low[i] === null || high[i] === null ? close() : stretch.push(i)));
  close();
  return shape;
}

function heat(figure, { x, y, xLabel, yLabel, values, texts, shades }) {
  const named = texts.map((row, i) => row.map((text, j) =>
    plain(`${yLabel}: ${y[i]}\n${xLabel}: ${x[j]}\n${text}`).replaceAll("\n", "<br>")));
  const inCells = texts.map((row, i) => row.map((text, j) => (values[i][j] === null ? "" : text)));
  // Places, not names, are the coordinates: two columns may bear the same name.
  const ticks = (names) => ({ tickvals: names.map((_, i) => i), ticktext: names.map(plain), ticks: "",
    ticklabelstandoff: 4, showgrid: false, showline: false });
  return {
    data: [{ type: "heatmap", z: values, xgap: 2, ygap: 2, showscale: false,
      text: inCells, texttemplate: "%{text}", textfont: { size: 13, color: colour("ink") },
      customdata: named, hovertemplate: "%{customdata}<extra></extra>", hoverongaps: false,
      ...scale(values.flat().filter((value) => value !== null), shades) }],
    layout: { hovermode: "closest", dragmode: false, xaxis: ticks(x), yaxis: { ...ticks(y), autorange: "reversed" },
      ...gaps(values) },
  };
}

function gaps(values) {
  const muted = colour("muted");
  const missing = values.flatMap((row, i) => row.flatMap((value, j) => (value === null ? [[i, j]] : [])));
  return {
    annotations: missing.map(([i, j]) => ({ x: j, y: i, text: "missing", showarrow: false,
      font: { color: muted, size: 12 } })),
    shapes: missing.map(([i, j]) => ({ type: "rect", x0: j - .46, x1: j + .46, y0: i - .44, y1: i + .44,
      line: { color: muted, width: 1, dash: "3px,3px" } })),
  };
}

// Numbers of both signs are differences: zero is neutral and the two signs have two colours.
function scale(values, shades) {
  const [less, none, more] = ["heat-less", "heat-low", "heat-more"].map(colour);
  const size = Math.max(...values.map(Math.abs));
  if (Math.min(...values) < 0 && Math.max(...values) > 0)
    return { zmin: -size, zmax: size, colorscale: [[0, less], [.5, none], [1, more]] };
  return { colorscale: shades.map(([place, strength]) => [place, mixed(none, more, strength)]) };
}

function mixed(one, two, share) {
  const [from, to] = [one, two].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return `rgb(${from.map((part, i) => Math.round(part + share * (to[i] - part))).join(", ")})`;
}

const SIGNS = ["circle-open", "square-open", "triangle-up-open"];

function points(figure, { groups }) {
  const shown = [...figure.querySelectorAll(".legend input")].map((input) => input.checked);
  const strokes = [...figure.querySelectorAll(".swatch")].map((swatch) => getComputedStyle(swatch).stroke);
  const data = groups.map((group, index) => ({
    type: "scatter", mode: "markers+text", visible: shown[index], name: "",
    x: group.map(({ x }) => x), y: group.map(({ mean }) => mean),
    text: group.map(({ label, named }) => (named ? plain(label) : "")), textposition: "top center",
    textfont: { size: 12, color: colour("ink") },
    customdata: group.map(({ text }) => plain(text)), hovertemplate: "%{customdata}<extra></extra>",
    marker: { symbol: SIGNS[index % SIGNS.length], size: 9, color: strokes[index], line: { width: 2 } },
    error_y: { type: "data", symmetric: false, color: faint(strokes[index]), thickness: 2, width: 0,
      array: group.map(({ mean, high }) => high - mean), arrayminus: group.map(({ mean, low }) => mean - low) },
  }));
  return { data, layout: { hovermode: "closest", dragmode: false } };
}

const KINDS = { curves, heat, points };

function build(figure, size = {}) {
  const drawing = JSON.parse(figure.querySelector("script").textContent);
  const { data, layout } = KINDS[figure.dataset.kind](figure, drawing);
  const [ink, muted, rule, paper] = ["ink", "muted", "rule", "paper"].map(colour);
  const axis = { automargin: true, gridcolor: rule, linecolor: muted, tickfont: { color: muted }, zeroline: false };
  return {
    data,
    layout: {
      font: { family: getComputedStyle(figure.querySelector(".plot")).fontFamily, size: 13, color: ink },
      // What the y axis counts stands above it, where a phone has room and nobody turns the head.
      title: { text: plain(drawing.yLabel), font: { size: 13, color: muted }, pad: { t: 6 },
        x: 0, xref: "container", xanchor: "left", y: 1, yref: "container", yanchor: "top" },
      paper_bgcolor: paper, plot_bgcolor: paper, showlegend: false, margin: { l: 44, r: 12, t: 34, b: 46 },
      hoverlabel: { bgcolor: paper, bordercolor: rule, font: { size: 12, color: ink }, namelength: -1, align: "left" },
      // Whoever has zoomed in stays there when a line is hidden or the screen turns dark.
      uirevision: "kept",
      autosize: !size.width, ...size, ...layout,
      xaxis: { ...axis, title: { text: plain(drawing.xLabel), font: { color: muted, size: 13 }, standoff: 10 },
        ...layout.xaxis },
      yaxis: { ...axis, ...layout.yaxis },
    },
  };
}

function draw(figure, size = {}) {
  const plot = figure.querySelector(".plot");
  const { data, layout } = build(figure, size);
  plot.style.height = size.height ? `${size.height}px` : "";
  Plotly.react(plot, data, layout, CONFIG);
}

const figures = [...document.querySelectorAll("figure")];
const root = document.documentElement;

function save(figure, filename) {
  root.classList.add("paper");
  const { data, layout } = build(figure, { width: 800, height: 450 });
  root.classList.remove("paper");
  Plotly.downloadImage({ data, layout: { ...layout, showlegend: true }, config: CONFIG }, { format: "svg", filename });
}

// A page that is about to be printed still has the size of the screen.
function paperSize(plot) {
  const widest = parseFloat(getComputedStyle(plot).maxWidth) || PAPER_WIDTH;
  return { width: Math.min(PAPER_WIDTH, widest), height: plot.clientHeight };
}

function onPaper(printing) {
  if (root.classList.contains("paper") === printing) return;
  root.classList.toggle("paper", printing);
  document.querySelectorAll("details.record").forEach((details) => {
    if (printing) details.dataset.wasOpen = details.open;
    details.open = printing || details.dataset.wasOpen === "true";
  });
  figures.forEach((figure) => draw(figure, printing ? paperSize(figure.querySelector(".plot")) : {}));
}

// What goes on beyond the right edge fades there.
function markOverflow(box) {
  const mark = () => box.classList.toggle("goes-on", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.addEventListener("scroll", mark, { passive: true });
  new ResizeObserver(mark).observe(box);
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll(".scroll").forEach(markOverflow);
figures.forEach((figure) => {
  draw(figure);
  figure.addEventListener("change", () => draw(figure));
});
document.querySelectorAll(".save").forEach((button) => button.addEventListener("click", () =>
  save(document.getElementById(button.dataset.figure).querySelector("figure"), button.dataset.figure)));
// A browser that prints from a dark screen also reports a change to light: the figures on paper stay as they are.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (!root.classList.contains("paper")) figures.forEach((figure) => draw(figure));
});
matchMedia("print").addEventListener("change", ({ matches }) => onPaper(matches));
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));
