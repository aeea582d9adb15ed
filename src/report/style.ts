// The one style sheet. Colours are variables with a light and a dark set. Drawings use them by class, because the page's
// policy forbids style attributes.

const LIGHT = `
--shade:rgba(0,0,0,.28);--page:#f7f7f5;--card:#ffffff;--ink:#1b1f24;--dim:#626a73;--line:#e2e3e0;--soft:#f0f0ed;--link:#1f5fa8;
--good:#1d7a4a;--bad:#b3362b;--notice:#fdf3dc;--notice-ink:#6b4a05;
--t1:#2265b3;--t2:#c8621b;--t3:#2b8a57;--t4:#7a55b5;--t5:#b8473f;--t6:#a1811a;--t7:#2a8d9c;--t8:#7b828b;
--p0:#e6effa;--p1:#d3e7d3;--p2:#f6ecb5;--p3:#fbd39a;--p4:#f7ab83;--p5:#ee8a80;--token-ink:#1b1f24;--given:#7c838b`;

const DARK = `
--shade:rgba(160,175,195,.5);--page:#121417;--card:#1a1d21;--ink:#e3e6ea;--dim:#98a0aa;--line:#2c3137;--soft:#22262b;--link:#79b1f0;
--good:#58c48b;--bad:#f0857a;--notice:#33290f;--notice-ink:#ecc873;
--t1:#6ba7ef;--t2:#ee9550;--t3:#5cc08a;--t4:#b292ea;--t5:#ec837a;--t6:#d2b24c;--t7:#5fc2d1;--t8:#949ca6;
--p0:#1f3148;--p1:#234030;--p2:#4a431c;--p3:#5c401a;--p4:#6b3420;--p5:#7c2a26;--token-ink:#eceff2;--given:#8a929c`;

const TONES = [1, 2, 3, 4, 5, 6, 7, 8]
  .map(
    tone =>
      `.line.t${tone},.measurement.m${tone}{stroke:var(--t${tone})}.dots.t${tone},.bar.t${tone},.name.t${tone},.plot .interval.t${tone}{fill:var(--t${tone})}.key.m${tone}{color:var(--t${tone})}`,
  )
  .join("\n");

const PROBABILITIES = [0, 1, 2, 3, 4, 5]
  .map(level => `.tokens .p${level}{background:var(--p${level})}`)
  .join("");

export const STYLE = `
:root{${LIGHT}}
@media (prefers-color-scheme:dark){:root{${DARK}}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:3.2rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 -apple-system,"Segoe UI",Roboto,Ubuntu,Cantarell,"Noto Sans",system-ui,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1360px;margin:0 auto;padding:0 20px 64px}
nav{position:sticky;top:0;z-index:2;display:flex;gap:4px;overflow-x:auto;padding:8px 16px;background:var(--page);border-bottom:1px solid var(--line)}
nav a{flex:none;padding:3px 10px;border-radius:6px;color:var(--dim);text-decoration:none;font-size:13px}
nav a:hover{background:var(--soft);color:var(--ink)}
a{color:var(--link)}
h1,h2,h3,h4,p{margin:0}
h1{font-size:30px;line-height:1.2;font-weight:650;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:19px;font-weight:650;margin-top:44px}
h3{font-size:14.5px;font-weight:600}
h4{font-size:13px;font-weight:600;margin:18px 0 6px;color:var(--dim)}
section>h3{margin:22px 0 8px}
.kicker{margin-top:28px;font-size:12.5px;color:var(--dim)}
.facts{display:flex;flex-wrap:wrap;gap:0 18px;margin-top:6px;color:var(--dim);font-size:13.5px}
.lead{max-width:104ch;margin:4px 0 14px;color:var(--dim);font-size:13.5px}
.empty,.omitted{color:var(--dim);margin:10px 0}
.omitted{font-size:12.5px;padding:6px 10px}
.notice{margin:12px 0;padding:8px 12px;border-radius:8px;background:var(--notice);color:var(--notice-ink);font-size:13.5px;overflow-wrap:anywhere}
.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,208px),1fr));gap:10px;margin-top:20px}
.tile{padding:13px 15px 14px;background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile h2{margin:0;font-size:12.5px;font-weight:500;color:var(--dim);overflow-wrap:anywhere}
.tile .value{margin:3px 0 4px;font-size:25px;line-height:1.25;font-weight:620;letter-spacing:-.015em}
.tile small{font-size:13px;font-weight:500;letter-spacing:0;color:var(--dim)}
.tile .from{font-size:16px;font-weight:500;color:var(--dim)}
.tile .note{font-size:12.5px;line-height:1.4;color:var(--dim)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,390px),1fr));gap:12px}
figure{display:flex;flex-direction:column;justify-content:space-between;margin:0;padding:12px 14px 8px;background:var(--card);border:1px solid var(--line);border-radius:10px}
figcaption p{margin:1px 0 8px;font-size:12.5px;line-height:1.4;color:var(--dim)}
.pair{display:grid;margin-top:12px;grid-template-columns:minmax(0,445px) minmax(0,1fr);gap:12px;align-items:start}
.columns{columns:2 500px;column-gap:12px}
.columns>*,.stack>*{break-inside:avoid;margin-bottom:12px}
.plot{display:block;width:100%;height:auto;font-size:11.5px}
.plot text{fill:var(--dim)}
.plot .grid{stroke:var(--line);fill:none}
.plot .y{text-anchor:end}.plot .x{text-anchor:middle}
.plot .unit{font-size:10.5px}
.plot .band rect{fill:var(--soft)}
.plot .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.plot .thin{stroke-width:1;stroke-opacity:.65}
.plot .dots{fill-opacity:.36}
.plot .bar{fill-opacity:.84}
.plot .name{font-weight:550}
.plot .hover rect{fill:var(--ink);fill-opacity:0}
.plot .hover rect:hover{fill-opacity:.09}
.plot .interval{fill-opacity:.15}
.plot .measurement path{stroke-width:1.6}
.plot .measurement circle{fill:var(--card);stroke-width:2}
.key{white-space:nowrap;font-weight:600}.key::before{content:"○ "}
${TONES}
.mini{display:block;width:104px;height:12px}
.mini.wide{width:220px;height:14px}
.mini path{fill:none;stroke:var(--line);stroke-width:2}
.mini .step{stroke:var(--t1);stroke-opacity:.5}
.mini .before{fill:var(--card);stroke:var(--t1);stroke-width:1.5}
.mini .after{fill:var(--t1)}
.mini .zero{stroke:var(--dim);stroke-width:1;stroke-dasharray:2 2}
.mini .interval{stroke:var(--dim)}.mini .dot{fill:var(--dim)}
.mini .interval.good{stroke:var(--good)}.mini .dot.good{fill:var(--good)}
.mini .interval.bad{stroke:var(--bad)}.mini .dot.bad{fill:var(--bad)}
.scroll{overflow-x:auto;background:linear-gradient(90deg,var(--card) 40%,transparent) 0 0/48px 100% no-repeat local,linear-gradient(270deg,var(--card) 40%,transparent) 100% 0/48px 100% no-repeat local,linear-gradient(90deg,var(--shade),transparent) 0 0/14px 100% no-repeat scroll,linear-gradient(270deg,var(--shade),transparent) 100% 0/14px 100% no-repeat scroll,var(--card);border:1px solid var(--line);border-radius:10px}
.scroll+h4{margin-top:14px}
table{width:100%;border-collapse:collapse;font-size:13px}
th,td{padding:4.5px 10px;text-align:left;vertical-align:middle;white-space:nowrap;font-weight:400}
thead th{padding-top:8px;color:var(--dim);font-size:12px;font-weight:500;border-bottom:1px solid var(--line)}
tbody th{position:sticky;left:0;background:var(--card);font-weight:550}
tbody tr+tr>*{border-top:1px solid var(--soft)}
.number{text-align:right}
td.long{min-width:14ch;max-width:64ch;white-space:normal;overflow-wrap:anywhere}
.episode,.numbers{margin-top:8px;background:var(--card);border:1px solid var(--line);border-radius:10px}
summary{cursor:pointer;padding:9px 14px;font-size:13.5px;overflow-wrap:anywhere}
summary>span{margin-left:10px;color:var(--dim)}
summary:hover{background:var(--soft);border-radius:10px}
.inside{padding:4px 14px 16px;border-top:1px solid var(--line)}
dl{display:grid;gap:2px;margin:10px 0;font-size:13px}
dl div{display:flex;gap:10px}
dt{flex:0 0 82px;color:var(--dim)}
dd{margin:0;min-width:0;overflow-wrap:anywhere}
pre,.tokens,code{font-family:ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12.5px;line-height:1.55}
pre{margin:0;padding:8px 12px;overflow:auto;max-height:24em;white-space:pre-wrap;overflow-wrap:anywhere;tab-size:4;unicode-bidi:isolate;text-align:left}
.instruction,.settings{background:var(--soft);border-radius:8px}
.turns{margin:0;padding:0;list-style:none;counter-reset:turn}
.turns li{counter-increment:turn;margin-top:8px;border:1px solid var(--line);border-radius:8px;overflow:hidden}
.turns li>p{padding:0 12px 8px;font-size:12.5px}
.answer{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 16px;background:var(--soft)}
.answer pre{flex:1 1 340px;font-weight:600}
.answer pre::before{content:counter(turn) "  ";color:var(--dim);font-weight:400}
.meta{display:flex;flex-wrap:wrap;gap:0 12px;padding:9px 12px;font-size:12px;color:var(--dim)}
.observation{border-top:1px solid var(--line)}
.unread{color:var(--dim)}
.tests{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));gap:2px 16px;margin:0;padding:0;list-style:none;font-size:13px;color:var(--ink);overflow-wrap:anywhere}
.tests li{color:var(--ink)}
.tests .good b{color:var(--good)}.tests .bad b{color:var(--bad)}
.chunk{margin-top:14px;border:1px solid var(--line);border-radius:8px}
.tokens{padding:4px 12px 12px;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.95;unicode-bidi:isolate}
.tokens i{margin-right:1px;padding:2px 1px;border-radius:3px;font-style:normal;color:var(--token-ink);background:var(--soft)}
.tokens .g,.legend>i:first-child{color:var(--given)}
.tokens .sp{font-style:italic}
.tokens i:hover{outline:1px solid var(--ink)}
${PROBABILITIES}
.legend{padding:10px 2px 0;color:var(--dim)}
.c,.cut{font-weight:400;color:var(--bad)}
.cut{color:var(--dim);font-style:italic}
.inside>.dim{margin-top:6px;font-size:12.5px}
tbody th a{text-decoration:none}
.problem{overflow-wrap:anywhere;font-size:13px}
@media (max-width:860px){.pair{grid-template-columns:minmax(0,1fr)}}
@media (max-width:560px){main{padding:0 12px 48px}h1{font-size:25px}.plot{font-size:13px}.plot .unit,.plot .name{font-size:12px}.tile .value{font-size:22px}figure{padding:10px 10px 6px}.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media print{nav{display:none}body{background:#fff;font-size:11px}main{max-width:none;padding:0}figure,.tile,.turns li,tr{break-inside:avoid}pre{max-height:none}.scroll{overflow:visible}th,td{white-space:normal;padding:3px 6px}details::details-content{content-visibility:visible;display:block;height:auto}.charts{grid-template-columns:repeat(2,1fr)}.hover{display:none}}
`;
