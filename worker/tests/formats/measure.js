// Puts the measures of the page into an element that the test reads.
const channel = (value) => { const part = value / 255; return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; };
const colour = (text) => text.match(/[\d.]+/g).map(Number);
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const found = colour(getComputedStyle(each).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
let contrast = 21, texts = 0, worst = "";
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || element.closest("script, title")) continue;
  const style = getComputedStyle(element);
  const svg = element.closest("svg");
  const front = luminance(colour(svg ? style.fill : style.color));
  const box = svg && element.previousElementSibling && element.closest(".node");
  const back = luminance(box ? colour(getComputedStyle(box.querySelector("rect")).fill) : behind(element));
  const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  texts += 1;
  if (ratio < contrast) { contrast = ratio; worst = element.tagName + "." + (element.className.baseVal ?? element.className); }
}
const overflow = Math.max(0, document.documentElement.scrollWidth - innerWidth);
const result = document.createElement("pre");
result.id = "measured";
result.textContent = JSON.stringify({ width: innerWidth, overflow, contrast, texts, worst, dark: matchMedia("(prefers-color-scheme: dark)").matches });
document.body.append(result);
