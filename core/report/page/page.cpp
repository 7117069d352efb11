#include "core/report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/strings.h"

namespace tandem {
namespace {

constexpr const char* page_style = R"(:root{--ink:#1d2733;--soft:#5c6875;--line:#dbe1e7;
--back:#fff;--box:#f4f6f8;--s0:#2f6fb0;--s1:#d9662b;--s2:#37915d;--s3:#9a55b0;--s4:#b8902a;
--s5:#3a9aa8;--s6:#c2476b;--s7:#7a7f87;--good:47 111 176;--bad:214 84 40;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--ink:#dde3ea;--soft:#98a4b0;--line:#333c46;
--back:#15191e;--box:#1e242b;--s0:#6aa9e6;--s1:#f0935c;--s2:#62c18b;--s3:#c48ad8;--s4:#dfbb58;
--s5:#6cc6d3;--s6:#ea7d9b;--s7:#a5abb3;--good:86 152 216;--bad:232 118 74}
.heat{filter:invert(1) hue-rotate(180deg)}}*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:76em;padding:1.2em 1em 4em;
color:var(--ink);background:var(--back);overflow-wrap:break-word}h1{font-size:1.6em;margin:.3em 0}
h2{font-size:1.2em;margin:2em 0 .6em;padding-top:.5em;border-top:1px solid var(--line)}
h3{font-size:1em;margin:1.2em 0 .4em}p{margin:.5em 0}.soft{color:var(--soft)}
code{background:var(--box);padding:.05em .3em;border-radius:3px;font-size:.93em}
.scroll{overflow-x:auto;max-width:100%}table{border-collapse:collapse;
font-variant-numeric:tabular-nums}td,th{padding:.18em .7em;text-align:right;vertical-align:middle;
border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:600;font-size:.9em;
vertical-align:bottom}td:first-child,th:first-child,.left{text-align:left}
td:first-child{max-width:24em;min-width:5em}td{white-space:nowrap}
td:first-child,.left{white-space:normal}table.sort th{cursor:pointer}
table.sort th:hover{color:var(--ink)}.tall{max-height:34em;overflow:auto}
.tall .scroll{overflow:visible}.tall th{position:sticky;top:0;background:var(--back)}
.bar{display:inline-block;height:.75em;background:var(--s0);border-radius:2px;margin-left:.6em;
vertical-align:middle}.barbox{display:inline-block;width:9em;text-align:left;white-space:nowrap}
.tiles{display:grid;
grid-template-columns:repeat(auto-fit,minmax(min(13em,45%),1fr));gap:.7em;margin:1em 0}.tile{background:var(--box);
border-radius:6px;padding:.6em 1em}.tile b{display:block;font-size:1.35em;
font-weight:600}.tile span{color:var(--soft);font-size:.88em}.charts{display:grid;
grid-template-columns:repeat(auto-fit,minmax(min(100%,27em),1fr));gap:1.2em}figure{margin:0}
figcaption{font-weight:600;font-size:.95em}svg{width:100%;height:auto;display:block}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}svg .grid{stroke:var(--line);
stroke-width:1}svg path{fill:none;stroke-width:1.8;stroke-linejoin:round}svg .faint{opacity:.35;
stroke-width:1}.key{font-size:.85em;color:var(--soft);display:flex;flex-wrap:wrap;gap:.1em 1em}
.key i{display:inline-block;width:1.1em;height:.25em;border-radius:2px;margin-right:.4em;
vertical-align:middle}.matrix td,.matrix th{border:1px solid var(--back);padding:.15em .35em;
text-align:center;font-size:.86em;min-width:2.4em}.matrix th{font-weight:400;color:var(--ink)}
.matrix th:first-child{text-align:right;max-width:14em;overflow:hidden;text-overflow:ellipsis;
white-space:nowrap;position:sticky;left:0;background:var(--back)}.matrix td{background:var(--box)}
.matrix td:first-child{text-align:center}.matrix .up{vertical-align:bottom;padding:.2em}
.matrix .up div{writing-mode:vertical-rl;transform:rotate(180deg);max-height:8em;overflow:hidden;
white-space:nowrap;text-overflow:ellipsis;margin:0 auto}
.matrix .g{background:rgb(var(--good)/var(--v))}.matrix .b{background:rgb(var(--bad)/var(--v))}
.heat{width:min(100%,40em);image-rendering:pixelated;border:1px solid var(--line);display:block}
.pictures{display:flex;flex-wrap:wrap;gap:.8em}.picture{width:9.5em;font-size:.84em;
line-height:1.35}.picture .both{position:relative;width:9.5em;height:9.5em;background:var(--box);
border-radius:4px;overflow:hidden}.picture .both img{position:absolute;inset:0;width:100%;
height:100%;object-fit:fill}.picture .map{opacity:.5;transition:opacity .15s}
.picture .both:hover .map{opacity:0}.small{image-rendering:pixelated}.bad{color:rgb(var(--bad))}
.open{border:0;padding:1px;background:none;cursor:zoom-in}
img.thumb{width:80px;height:80px;display:block}.doubled{list-style:none;padding:0}
.doubled li{display:flex;align-items:center;gap:.6em}.doubled span{min-width:0;
overflow-wrap:anywhere}dialog{border:0;border-radius:6px;
background:var(--box);color:var(--ink);max-width:94vw}dialog::backdrop{background:rgb(0 0 0/.6)}
dialog img{display:block;width:min(84vw,70vh,30em)}ul{padding-left:1.3em}
li{margin:.25em 0}details summary{cursor:pointer;color:var(--soft)}
@media(max-width:40em){td,th{padding:.18em .45em}.barbox{width:auto}.bar{display:none}
.matrix th:first-child{max-width:7.5em}.picture,.picture .both{width:8.2em}
.picture .both{height:8.2em}.classes table,.classes thead,.classes tbody{display:block}
.classes tr{display:flex;flex-wrap:wrap;
border-bottom:1px solid var(--line)}.classes td,.classes th{border:0;width:4.5em}
.classes td:first-child,.classes th:first-child{flex:1;min-width:0;overflow-wrap:anywhere}
.classes th:nth-last-child(-n+2),.classes td:nth-last-child(2){display:none}
.classes td:last-child{width:100%}})";

// Sorts the rows of a table by the column whose heading is clicked; again: the other way round.
constexpr const char* page_script =
    R"(document.querySelectorAll('table.sort').forEach(t=>
t.querySelectorAll('th').forEach((h,c)=>{let up=c?1:-1;
h.addEventListener('click',()=>{const b=t.tBodies[0],v=r=>r.cells[c].textContent;up=-up;
[...b.rows].sort((x,y)=>{const p=v(x),q=v(y),n=parseFloat(p)-parseFloat(q);
return up*(isNaN(n)?p.localeCompare(q,undefined,{numeric:true}):n)}).forEach(r=>b.append(r))})}));
document.querySelectorAll('.open').forEach(o=>o.addEventListener('click',()=>{
const d=document.createElement('dialog'),i=new Image(),p=document.createElement('p');
i.src=o.firstChild.src;p.textContent=o.title;d.append(i,p);document.body.append(d);
d.addEventListener('click',()=>d.close());d.addEventListener('close',()=>d.remove());
d.showModal()}));)";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width,initial-scale=1\"><title>{0}</title>\n<style>{1}</style></head>"
      "<body>\n<h1>{0}</h1>\n{2}<script>{3}</script></body></html>\n",
      escape_xml(title), page_style, body, page_script);
}

std::string html_table(const HtmlRow& heading, const std::vector<HtmlRow>& rows, bool sortable) {
  std::string html = fmt::format("<div class=scroll><table{}><thead><tr>",
                                 sortable ? " class=sort title=\"a heading sorts\"" : "");
  for (const std::string& cell : heading) html += "<th>" + cell + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const HtmlRow& row : rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + cell + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string shown(const std::string& text) {
  constexpr size_t longest = 80;
  if (text.size() <= longest) return escape_xml(text);
  return escape_xml(first_bytes(text, longest)) + "&hellip;";
}

std::string html_bar(double share, const std::string& text) {
  constexpr double widest = 5;  // em
  return fmt::format("<span class=barbox>{}<span class=bar style=\"width:{:.2f}em\"></span></span>",
                     text, widest * std::clamp(share, 0.0, 1.0));
}

std::string percent(double share, int digits) {
  return std::isfinite(share) ? fmt::format("{:.{}f} %", 100 * share, digits) : "&ndash;";
}

}  // namespace tandem
