/*! airflow-flinkcompat, Apache-2.0; jsdiff, BSD-3-Clause: see licenses.txt */
"use strict";(()=>{var h=globalThis,t=h.React,{useEffect:d,useId:_e,useMemo:Fe,useRef:Ue,useState:p}=h.React,M=new URL(document.baseURI).pathname.replace(/[^/]*$/,""),b=e=>M+e.replace(/^\//,""),Z=()=>h.ReactRouterDOM.useLocation(),X=()=>h.ReactRouterDOM.useNavigate(),R=()=>{let[,e]=p(0);return d(()=>{let n=()=>e(o=>o+1);return window.addEventListener("popstate",n),()=>window.removeEventListener("popstate",n)},[]),{pathname:window.location.pathname.slice(M.length-1),search:window.location.search}},ee=()=>(e,n)=>{n?.replace?(window.history.replaceState(null,"",b(e)),window.dispatchEvent(new PopStateEvent("popstate"))):window.location.assign(b(e))},x=h.ReactRouterDOM?Z:R,w=h.ReactRouterDOM?X:ee;var te={401:"You are not signed in any more. Reload the page to sign in again.",403:"You may not see this. Access is given with the right to read the DAG that deploys the job.",404:"There is no such thing here. It may have been renamed, or its ledger is not one that Airflow knows.",503:"The ledger cannot be read at the moment."},O=(e,n)=>({title:te[e]??`Airflow could not answer (status ${e}). Its API server's log says why.`,detail:n}),ne=e=>{try{let n=JSON.parse(e).detail;return typeof n=="string"?n:""}catch{return""}};async function oe(e,n){let o;try{o=await fetch(b(e),{signal:n,headers:{Accept:"application/json"}})}catch(r){throw n.aborted?r:{title:"Airflow cannot be reached. Are you offline?",detail:""}}let i=await o.text();if(!o.ok)throw O(o.status,ne(i));try{return JSON.parse(i)}catch{throw O(o.status,"The answer is no JSON.")}}function v(e,n){let[o,i]=p({loading:!0}),[r,a]=p(0),c=()=>a(s=>s+1);return d(()=>{if(e===void 0)return;let s=new AbortController;return i(f=>({...f,loading:!0})),oe(e,s.signal).then(f=>i({path:e,data:f,loading:!1}),f=>s.signal.aborted||i({path:e,failure:f,loading:!1})),()=>s.abort()},[e,r]),d(()=>{if(!n||e===void 0)return;let s=setInterval(()=>document.hidden||c(),n*1e3);return()=>clearInterval(s)},[e,n]),{data:o.data,failure:o.failure,loading:o.loading,again:c}}var A="/plugin/flink",I=e=>{let n=new URLSearchParams(e),[o,i,r]=[n.get("ledger"),n.get("deployment"),Number(n.get("change"))];return!o||!i?{}:r>0?{ledger:o,deployment:i,change:r}:{ledger:o,deployment:i}},k=(e,n)=>{let o=new URLSearchParams;for(let[i,r]of Object.entries(n))r!==void 0&&r!==""&&o.set(i,`${r}`);return o.size?`${e}?${o}`:e},re=encodeURIComponent,u=(e={})=>k(A,e),N=(e,n)=>k(A,{ledger:e,deployment:n}),E=(e,n,o)=>k(A,{ledger:e,deployment:n,change:o});var ie="/flinkcompat/api/v1",S=(e,n)=>{let o=k(`${ie}/deployments`,e),i=n.map(r=>`attention=${re(r)}`).join("&");return i?`${o}${o.includes("?")?"&":"?"}${i}`:o};var F=(e,n)=>{let o=(n-Date.parse(e))/1e3;return Number.isNaN(o)?e:o<60?"just now":o<3600?`${Math.floor(o/60)} min ago`:o<172800?`${Math.floor(o/3600)} h ago`:`${Math.floor(o/86400)} d ago`},ae=new Intl.DateTimeFormat(void 0,{dateStyle:"medium",timeStyle:"medium"}),U=e=>{let n=new Date(e);return Number.isNaN(n.getTime())?e:ae.format(n)},_=["bytes","kB","MB","GB","TB","PB"],C=e=>{let n=e<1e3?0:Math.min(_.length-1,Math.floor(Math.log10(e)/3));return`${Number((e/1e3**n).toPrecision(3))} ${_[n]}`},g=(e,n,o=`${n}s`)=>`${e} ${e===1?n:o}`,P=e=>/^[0-9a-f]{20,}$/.test(e)?e.slice(0,8):e,se={flink:"Flink",vvr:"VVR"},j=e=>[se[e.engine]??e.engine,e.engine_version].filter(Boolean).join(" "),le={savepoint:"from the savepoint",checkpoint:"from a checkpoint",migrated:"from the migrated savepoint",stateless:"without state"},H=e=>le[e]??e,de={adopted:"Adopted",approved:"Approved",backfilled:"Backfilled",checked:"Checked",deployed:"Deployed",deploying:"Redeploy begun",disposed:"Savepoint deleted",failed:"Failed",interrupted:"Interrupted",migrated:"Savepoint migrated",migrating:"Migrating the savepoint",planned:"Plan only",rehearsed:"Rehearsed",rejected:"Rejected","rolled-back":"Rolled back","rolling-back":"Rolling back",started:"Job started",starting:"Starting the job",stopped:"Job stopped",stopping:"Stopping the job",unchanged:"Unchanged"},B=e=>de[e]??e,ce={compatible:"The state fits.",partial:"A part of the state fits, the rest begins anew.",unknown:"It cannot be told whether the state fits.",incompatible:"The state does not fit."},q=e=>ce[e]??"";function l({to:e,children:n,className:o}){let i=w();return t.createElement("a",{className:o,href:b(e),onClick:r=>{r.button||r.metaKey||r.ctrlKey||r.shiftKey||r.altKey||(r.preventDefault(),i(e))}},n)}function G({href:e,children:n}){return!e||!/^https?:\/\//i.test(e)?t.createElement(t.Fragment,null,n):t.createElement("a",{href:e,rel:"noreferrer",target:"_blank"},n,t.createElement("span",{"aria-hidden":"true"}," ↗"),t.createElement("span",{className:"fc-hidden"}," (opens in a new tab)"))}function pe(){let[e,n]=p(Date.now);return d(()=>{let o=setInterval(()=>n(Date.now()),6e4);return()=>clearInterval(o)},[]),e}function m({at:e}){return t.createElement("time",{dateTime:e,title:U(e)},F(e,pe()))}function y({tone:e,children:n,title:o}){return t.createElement("span",{className:`fc-badge fc-${e}`,title:o},n)}var fe={compatible:"good",partial:"fair",unknown:"doubt",incompatible:"bad"};function Y({outcome:e}){return t.createElement(y,{tone:fe[e]??"plain",title:q(e)},e)}function z({id:e}){return t.createElement("code",{title:P(e)===e?void 0:e,className:"fc-id"},P(e))}function ue({failure:e,again:n}){return t.createElement("div",{className:"fc-note fc-note-bad",role:"alert"},t.createElement("p",null,e.title),e.detail&&t.createElement("p",{className:"fc-muted"},e.detail),t.createElement("button",{type:"button",className:"fc-button",onClick:n},"Try again"))}function D({answer:e,children:n}){return e.failure?t.createElement(ue,{failure:e.failure,again:e.again}):e.data===void 0?t.createElement("p",{className:"fc-muted",role:"status"},"Reading the ledger …"):t.createElement(t.Fragment,null,n(e.data))}function J({caption:e,heads:n,children:o}){return t.createElement("div",{className:"fc-scroll",role:"region","aria-label":e,tabIndex:0},t.createElement("table",{className:"fc-table"},t.createElement("caption",{className:"fc-hidden"},e),t.createElement("thead",null,t.createElement("tr",null,n.map(i=>t.createElement("th",{key:i,scope:"col"},i)))),t.createElement("tbody",null,o)))}function K({title:e,above:n,children:o}){return t.createElement("div",{className:"fc-root fc-page"},n&&t.createElement("nav",{className:"fc-above","aria-label":"Pages above this one"},n),t.createElement("h1",null,e),o)}function T({one:e}){let n=e.pending??e.checked;return n?t.createElement("div",{className:"fc-stack"},t.createElement(l,{to:E(e.ledger,e.deployment,n.number)},n.outcome?t.createElement(Y,{outcome:n.outcome}):"first version",t.createElement("span",{className:"fc-hidden"}," change of ",e.deployment)),e.pending&&t.createElement("span",null,"waits since ",t.createElement(m,{at:e.pending.at}))):t.createElement("span",{className:"fc-muted"},"–")}function $({one:e}){return t.createElement("div",{className:"fc-stack"},e.unfinished&&t.createElement("span",null,t.createElement(y,{tone:e.unfinished_state==="interrupted"?"bad":"busy"},e.unfinished_state)," ",B(e.unfinished.kind).toLowerCase(),", ",t.createElement(m,{at:e.unfinished.at})),e.failed&&t.createElement("span",null,t.createElement(y,{tone:"bad"},e.entry?.kind==="rolled-back"?"rolled back":"failed")," ",t.createElement(m,{at:e.failed.at}),e.failed.message&&t.createElement("span",{className:"fc-clip"},e.failed.message)))}var L=50,ge=30,me=300,be=[["pending","wait for a decision"],["in_flight","in flight"],["interrupted","interrupted"],["failed","failed"],["unreadable","unreadable"]],he=e=>{let n=new URLSearchParams(e);return{show:n.get("show")??"",team:n.get("team")??"",q:n.get("q")??"",page:Math.max(1,Math.floor(Number(n.get("page")))||1)}};function W(){let e=w(),n=he(x().search),o=a=>{let{page:c,...s}={...n,page:1,...a};e(u({...s,page:c>1?c:void 0}),{replace:!0})},i=n.show.split(",").filter(Boolean),r=v(S({team:n.team,q:n.q,limit:L,offset:(n.page-1)*L},i),ge);return t.createElement(K,{title:"Flink deployments"},t.createElement(D,{answer:r},a=>t.createElement(t.Fragment,null,t.createElement(ye,{list:a}),t.createElement(xe,{list:a}),a.counts.all===0?t.createElement(we,{list:a}):t.createElement(t.Fragment,null,t.createElement(ve,{list:a,filters:n,kinds:i,go:o}),t.createElement("p",{className:"fc-muted",role:"status"},a.total===a.counts.all?g(a.total,"deployment"):`${a.total} of ${g(a.counts.all,"deployment")}`),a.total>0&&t.createElement(Se,{list:a}),t.createElement(Pe,{total:a.total,page:n.page,go:o})))))}function ye({list:e}){let{pending:n,interrupted:o}=e.counts;return!n&&!o?null:t.createElement("p",{className:"fc-headline"},n>0&&t.createElement(l,{to:u({show:"pending"})},g(n,"waits","wait")," for a decision"),o>0&&t.createElement(l,{to:u({show:"interrupted"})},g(o,"redeploy is","redeploys are")," interrupted"))}function xe({list:e}){let n=[...e.problems,...e.ledgers.filter(o=>o.error).map(o=>`Ledger ${o.uri??o.id}: ${o.error}`)];return n.length?t.createElement("ul",{className:"fc-note fc-note-bad"},n.map(o=>t.createElement("li",{key:o},o))):null}function we({list:e}){return t.createElement("div",{className:"fc-note"},e.ledgers.length?t.createElement("p",null,"There are no deployments that you may see. One appears with the first run of its DAG, for everybody who may read that DAG."):t.createElement("p",null,"Airflow knows no ledger. Name one in a Flink connection (extra ",t.createElement("code",null,"ledger"),"), or in the setting"," ",t.createElement("code",null,"[flinkcompat] ledgers"),"."))}function ve({list:e,filters:n,kinds:o,go:i}){return t.createElement("form",{className:"fc-bar",role:"search",onSubmit:r=>r.preventDefault()},t.createElement(ke,{value:n.q,change:r=>i({q:r})}),e.teams.length>0&&t.createElement("select",{"aria-label":"Team",value:n.team,onChange:r=>i({team:r.currentTarget.value})},t.createElement("option",{value:""},"all teams"),[...new Set([...e.teams,...n.team?[n.team]:[]])].map(r=>t.createElement("option",{key:r},r))),t.createElement("div",{className:"fc-chips",role:"group","aria-label":"Show only"},be.filter(([r])=>e.counts[r]>0||o.includes(r)).map(([r,a])=>{let c=o.includes(r),s=c?o.filter(f=>f!==r):[...o,r];return t.createElement("button",{key:r,type:"button",className:"fc-chip","aria-pressed":c,onClick:()=>i({show:s.join(",")})},a," ",t.createElement("b",null,e.counts[r]))})))}function ke({value:e,change:n}){let[o,i]=p(e);return d(()=>i(e),[e]),d(()=>{if(o===e)return;let r=setTimeout(()=>n(o),me);return()=>clearTimeout(r)},[o]),t.createElement("input",{type:"search","aria-label":"Search by name, DAG, team, owner, author, commit or job",placeholder:"Search: name, DAG, team, author, commit, job",maxLength:200,value:o,onChange:r=>i(r.currentTarget.value)})}var Ne=["Deployment","What runs","Proposed","Redeploy","Last savepoint"];function Se({list:e}){let n=e.ledgers.length>1;return t.createElement(J,{caption:"Deployments",heads:Ne},e.deployments.map(o=>t.createElement(Te,{key:`${o.ledger}/${o.deployment}`,one:o,ledger:n?De(e,o):""})))}var De=(e,n)=>{let o=e.ledgers.find(i=>i.id===n.ledger);return o?.connections.join(", ")||o?.uri||""};function Te({one:e,ledger:n}){return t.createElement("tr",null,t.createElement("th",{scope:"row"},t.createElement("div",{className:"fc-stack"},t.createElement(l,{to:N(e.ledger,e.deployment)},e.deployment),t.createElement("span",{className:"fc-muted"},[e.team,e.owned_by&&e.owned_by!==e.team?e.owned_by:"",n].filter(Boolean).join(" · ")))),e.error?t.createElement("td",{colSpan:4},t.createElement(y,{tone:"bad"},"unreadable")," ",e.error):t.createElement(t.Fragment,null,t.createElement("td",null,t.createElement($e,{one:e})),t.createElement("td",null,t.createElement(T,{one:e})),t.createElement("td",null,t.createElement($,{one:e})),t.createElement("td",null,e.savepoint?t.createElement(Ae,{of:e.savepoint}):t.createElement("span",{className:"fc-muted"},"–"))))}function $e({one:e}){if(!e.entry)return t.createElement("span",{className:"fc-muted"},"nothing yet");let{at:n,approved_by:o,job_id:i,start_mode:r}=e.entry;return t.createElement("div",{className:"fc-stack"},t.createElement("span",null,j(e.entry),i&&t.createElement(t.Fragment,null,", job"," ",t.createElement(G,{href:e.job_url},t.createElement(z,{id:i})))),t.createElement("span",{className:"fc-muted"},"since ",t.createElement(m,{at:n}),r&&`, ${H(r)}`,o&&`, approved by ${o}`))}function Ae({of:e}){return t.createElement("div",{className:"fc-stack"},t.createElement("span",{title:e.path},t.createElement(m,{at:e.taken_at})),e.bytes!==null&&t.createElement("span",{className:"fc-muted"},C(e.bytes)))}function Pe({total:e,page:n,go:o}){let i=Math.max(1,Math.ceil(e/L));return i===1&&n===1?null:t.createElement("nav",{className:"fc-paging","aria-label":"Pages of the list"},t.createElement("button",{type:"button",className:"fc-button",disabled:n<=1,onClick:()=>o({page:n-1})},"Previous"),t.createElement("span",null,"Page ",n," of ",i),t.createElement("button",{type:"button",className:"fc-button",disabled:n>=i,onClick:()=>o({page:n+1})},"Next"))}var Le=5,Me=60;function V(){let e=v(S({limit:Le},["pending","interrupted","failed"]),Me);return t.createElement("section",{className:"fc-root fc-card","aria-label":"Flink deployments"},t.createElement("div",{className:"fc-section-head"},t.createElement("h2",null,t.createElement(l,{to:u()},"Flink deployments")),e.data&&t.createElement("span",{className:"fc-muted"},g(e.data.counts.all,"deployment"))),t.createElement(D,{answer:e},n=>n.deployments.length===0?t.createElement("p",{className:"fc-muted"},"Nothing waits for a decision, nothing is interrupted."):t.createElement(t.Fragment,null,t.createElement("ul",{className:"fc-list"},n.deployments.map(o=>t.createElement("li",{key:`${o.ledger}/${o.deployment}`},t.createElement(l,{to:N(o.ledger,o.deployment)},o.deployment),o.pending&&t.createElement(T,{one:o}),t.createElement($,{one:o})))),n.total>n.deployments.length&&t.createElement(l,{to:u({show:"pending,interrupted,failed"})},"All ",n.total," that need somebody"))))}var Q=`/* Airflow's UI sets the variables of Chakra UI, and a class of the root element for the theme: so both themes follow. */
.fc-root {
  --fc-fg: var(--chakra-colors-fg, #000);
  --fc-muted: var(--chakra-colors-fg-muted, #52525b);
  --fc-bg: var(--chakra-colors-bg, #fff);
  --fc-subtle: var(--chakra-colors-bg-subtle, #fafafa);
  --fc-raised: var(--chakra-colors-bg-muted, #f4f4f5);
  --fc-border: var(--chakra-colors-border, #e4e4e7);
  --fc-link: #1d4ed8;
  --fc-focus: #2563eb;
  --fc-good-bg: #dcfce7;
  --fc-good: #14532d;
  --fc-fair-bg: #fef3c7;
  --fc-fair: #713f12;
  --fc-doubt-bg: #ffedd5;
  --fc-doubt: #7c2d12;
  --fc-bad-bg: #fee2e2;
  --fc-bad: #7f1d1d;
  --fc-busy-bg: #dbeafe;
  --fc-busy: #1e3a8a;
  --fc-add-bg: #e6ffec;
  --fc-add: #abf2bc;
  --fc-del-bg: #ffebe9;
  --fc-del: #ffc0bb;
  color: var(--fc-fg);
  font-size: 14px;
  line-height: 1.45;
}
.dark .fc-root {
  --fc-link: #93c5fd;
  --fc-focus: #60a5fa;
  --fc-good-bg: #14532d;
  --fc-good: #dcfce7;
  --fc-fair-bg: #713f12;
  --fc-fair: #fef3c7;
  --fc-doubt-bg: #7c2d12;
  --fc-doubt: #ffedd5;
  --fc-bad-bg: #7f1d1d;
  --fc-bad: #fee2e2;
  --fc-busy-bg: #1e3a8a;
  --fc-busy: #dbeafe;
  --fc-add-bg: #12261e;
  --fc-add: #1d572d;
  --fc-del-bg: #2d1a1e;
  --fc-del: #7a2c30;
}
.fc-page {
  max-width: 1600px;
  padding: 8px 16px 48px;
}
.fc-root h1 {
  font-size: 22px;
  font-weight: 600;
  line-height: 1.3;
  margin: 4px 0 12px;
  overflow-wrap: anywhere;
}
.fc-root h2 {
  font-size: 16px;
  font-weight: 600;
}
.fc-root h3 {
  font-size: 14px;
  font-weight: 600;
}
.fc-root a {
  color: var(--fc-link);
  overflow-wrap: anywhere;
  text-decoration: underline;
  text-decoration-color: transparent;
  text-underline-offset: 2px;
}
.fc-root a:hover {
  text-decoration-color: currentColor;
}
.fc-root p a,
.fc-root dd a,
.fc-root li a {
  text-decoration-color: currentColor;
}
.fc-root :focus-visible {
  border-radius: 3px;
  outline: 2px solid var(--fc-focus);
  outline-offset: 2px;
}
.fc-root code,
.fc-code {
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  font-size: 12.5px;
}
.fc-muted {
  color: var(--fc-muted);
}
.fc-hidden {
  clip-path: inset(50%);
  height: 1px;
  overflow: hidden;
  position: absolute;
  white-space: nowrap;
  width: 1px;
}
.fc-stack {
  display: flex;
  flex-direction: column;
  gap: 2px;
}
.fc-clip {
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 2;
  color: var(--fc-muted);
  display: -webkit-box;
  overflow: hidden;
  overflow-wrap: anywhere;
}
.fc-above {
  display: flex;
  flex-wrap: wrap;
  gap: 6px;
}
.fc-headline {
  display: flex;
  flex-wrap: wrap;
  font-weight: 600;
  gap: 4px 20px;
  margin-bottom: 12px;
}
.fc-note {
  background: var(--fc-raised);
  border-radius: 6px;
  display: flex;
  flex-direction: column;
  gap: 6px;
  margin: 0 0 12px;
  overflow-wrap: anywhere;
  padding: 10px 14px;
}
.fc-note-bad {
  background: var(--fc-bad-bg);
  color: var(--fc-bad);
}
.fc-note-bad .fc-muted {
  color: inherit;
}
.fc-badge {
  border-radius: 10px;
  display: inline-block;
  font-size: 12px;
  font-weight: 600;
  line-height: 1.3;
  padding: 1px 8px;
  white-space: nowrap;
}
.fc-good {
  background: var(--fc-good-bg);
  color: var(--fc-good);
}
.fc-fair {
  background: var(--fc-fair-bg);
  color: var(--fc-fair);
}
.fc-doubt {
  background: var(--fc-doubt-bg);
  color: var(--fc-doubt);
}
.fc-bad {
  background: var(--fc-bad-bg);
  color: var(--fc-bad);
}
.fc-busy {
  background: var(--fc-busy-bg);
  color: var(--fc-busy);
}
.fc-plain {
  background: var(--fc-raised);
  color: var(--fc-fg);
}
.fc-bar {
  display: flex;
  flex-wrap: wrap;
  gap: 8px;
  margin-bottom: 8px;
}
.fc-bar input,
.fc-bar select,
.fc-button,
.fc-chip {
  background: var(--fc-bg);
  border: 1px solid var(--fc-border);
  border-radius: 6px;
  color: inherit;
  font: inherit;
  min-height: 32px;
  padding: 4px 10px;
}
.fc-bar input {
  flex: 1 1 260px;
  max-width: 420px;
  min-width: 0;
}
.fc-bar input::placeholder {
  color: var(--fc-muted);
  opacity: 1;
}
.fc-button,
.fc-chip {
  cursor: pointer;
}
.fc-button {
  align-self: flex-start;
}
.fc-button:disabled {
  color: var(--fc-muted);
  cursor: default;
}
.fc-chips {
  display: flex;
  flex-wrap: wrap;
  gap: 6px;
}
.fc-chip {
  border-radius: 16px;
}
.fc-chip[aria-pressed="true"] {
  background: var(--fc-fg);
  border-color: var(--fc-fg);
  color: var(--fc-bg);
}
.fc-scroll {
  overflow-x: auto;
}
.fc-table {
  border-collapse: collapse;
  width: 100%;
}
.fc-table th,
.fc-table td {
  border-bottom: 1px solid var(--fc-border);
  padding: 7px 10px;
  text-align: start;
  vertical-align: top;
}
.fc-table thead th {
  color: var(--fc-muted);
  font-size: 12px;
  font-weight: 600;
  white-space: nowrap;
}
.fc-table tbody th {
  font-weight: 500;
  max-width: 320px;
  overflow-wrap: anywhere;
}
.fc-paging {
  align-items: center;
  display: flex;
  gap: 12px;
  margin-top: 12px;
}
.fc-card {
  border: 1px solid var(--fc-border);
  border-radius: 8px;
  order: 3;
  padding: 12px 16px;
}
.fc-section {
  margin-top: 24px;
}
.fc-section-head {
  align-items: baseline;
  display: flex;
  flex-wrap: wrap;
  gap: 4px 12px;
  justify-content: space-between;
  margin-bottom: 8px;
}
.fc-list {
  list-style: none;
}
.fc-list > li {
  border-top: 1px solid var(--fc-border);
  display: flex;
  flex-wrap: wrap;
  gap: 2px 16px;
  padding: 6px 0;
}
`;function Ie(){let e=I(x().search);return t.createElement(W,null)}function Ee(){let e=new CSSStyleSheet;e.replaceSync(Q),document.adoptedStyleSheets=[...document.adoptedStyleSheets,e],Object.assign(globalThis,{"Flink deployments":Ie,"Flink overview":V})}Ee();})();
