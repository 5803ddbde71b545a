/*! airflow-flinkcompat, Apache-2.0; jsdiff, BSD-3-Clause: see licenses.txt */
"use strict";(()=>{var Z=globalThis,t=Z.React,{useEffect:O,useId:ir,useMemo:Je,useRef:Ye,useState:v}=Z.React,Qe=new URL(document.baseURI).pathname.replace(/[^/]*$/,""),Q=e=>Qe+e.replace(/^\//,""),Wt=()=>Z.ReactRouterDOM.useLocation(),Bt=()=>Z.ReactRouterDOM.useNavigate(),Ht=()=>{let[,e]=v(0);return O(()=>{let n=()=>e(r=>r+1);return window.addEventListener("popstate",n),()=>window.removeEventListener("popstate",n)},[]),{pathname:window.location.pathname.slice(Qe.length-1),search:window.location.search}},Ut=()=>(e,n)=>{n?.replace?(window.history.replaceState(null,"",Q(e)),window.dispatchEvent(new PopStateEvent("popstate"))):window.location.assign(Q(e))},se=Z.ReactRouterDOM?Wt:Ht,ae=Z.ReactRouterDOM?Bt:Ut;var Vt={401:"You are not signed in any more. Reload the page to sign in again.",403:"You may not see this. Access is given with the right to read the DAG that deploys the job.",404:"There is no such thing here. It may have been renamed, or its ledger is not one that Airflow knows.",503:"The ledger cannot be read at the moment."},Ze=(e,n)=>({title:Vt[e]??`Airflow could not answer (status ${e}). Its API server's log says why.`,detail:n}),zt=e=>{try{let n=JSON.parse(e).detail;return typeof n=="string"?n:""}catch{return""}};async function qt(e,n){let r;try{r=await fetch(Q(e),{signal:n,headers:{Accept:"application/json"}})}catch(i){throw n.aborted?i:{title:"Airflow cannot be reached. Are you offline?",detail:""}}let o=await r.text();if(!r.ok)throw Ze(r.status,zt(o));try{return JSON.parse(o)}catch{throw Ze(r.status,"The answer is no JSON.")}}function P(e,n){let[r,o]=v({loading:!0}),[i,s]=v(0),a=()=>s(d=>d+1);return O(()=>{if(e===void 0)return;let d=new AbortController;return o(l=>({...l,loading:!0})),qt(e,d.signal).then(l=>o({path:e,data:l,loading:!1}),l=>d.signal.aborted||o({path:e,failure:l,loading:!1})),()=>d.abort()},[e,i]),O(()=>{if(!n||e===void 0)return;let d=setInterval(()=>document.hidden||a(),n*1e3);return()=>clearInterval(d)},[e,n]),{data:r.data,failure:r.failure,loading:r.loading,again:a}}var ke="/plugin/flink",Xe=e=>{let n=new URLSearchParams(e),[r,o,i]=[n.get("ledger"),n.get("deployment"),Number(n.get("change"))];return!r||!o?{}:i>0?{ledger:r,deployment:o,change:i}:{ledger:r,deployment:o}},X=(e,n)=>{let r=new URLSearchParams;for(let[o,i]of Object.entries(n))i!==void 0&&i!==""&&r.set(o,`${i}`);return r.size?`${e}?${r}`:e},$=encodeURIComponent,N=(e={})=>X(ke,e),B=(e,n)=>X(ke,{ledger:e,deployment:n}),F=(e,n,r)=>X(ke,{ledger:e,deployment:n,change:r}),Ne=e=>`/dags/${$(e)}`,le=e=>`${Ne(e.dag_id)}/runs/${$(e.run_id)}`,Se=(e,n)=>`${le(e)}/tasks/${$(n)}`,Ke=(e,n)=>`${n?Se(e,n):le(e)}/required_actions`,Pe="/flinkcompat/api/v1",de=(e,n)=>{let r=X(`${Pe}/deployments`,e),o=n.map(i=>`attention=${$(i)}`).join("&");return o?`${r}${r.includes("?")?"&":"?"}${o}`:r},Te=(e,n)=>`${Pe}/deployments/${$(e)}/${$(n)}`,Re=(e,n,r)=>`${Te(e,n)}/changes/${r}`,et=(e,n,r)=>X(`${Pe}/runs/${$(e)}/${$(n)}`,{task_id:r}),tt=e=>X(`/api/v2/dags/${$(e.dag_id)}/dagRuns/${$(e.run_id)}/hitlDetails`,{response_received:"false"});var _e=e=>e<1?`${Math.max(0,Math.round(e*1e3))} ms`:e<60?`${Number(e.toFixed(e<10?1:0))} s`:e<3600?`${Math.floor(e/60)} min ${Math.round(e%60)} s`:e<86400?`${Math.floor(e/3600)} h ${Math.floor(e%3600/60)} min`:`${Math.floor(e/86400)} d ${Math.floor(e%86400/3600)} h`,Le=(e,n)=>{let r=(n-Date.parse(e))/1e3;return Number.isNaN(r)?e:r<60?"a moment":r<3600?`${Math.floor(r/60)} min`:r<172800?`${Math.floor(r/3600)} h`:`${Math.floor(r/86400)} d`},Gt=new Intl.DateTimeFormat(void 0,{dateStyle:"medium",timeStyle:"medium"}),fe=e=>{let n=new Date(e);return Number.isNaN(n.getTime())?e:Gt.format(n)},nt=["bytes","kB","MB","GB","TB","PB"],oe=e=>{let n=e<1e3?0:Math.min(nt.length-1,Math.floor(Math.log10(e)/3));return`${Number((e/1e3**n).toPrecision(3))} ${nt[n]}`},S=(e,n,r=`${n}s`)=>`${e} ${e===1?n:r}`,De=e=>/^[0-9a-f]{20,}$/.test(e)?e.slice(0,8):e,Jt={flink:"Flink",vvr:"VVR"},pe=e=>[Jt[e.engine]??e.engine,e.engine_version].filter(Boolean).join(" "),Yt={savepoint:"from the savepoint",checkpoint:"from a checkpoint",migrated:"from the migrated savepoint",stateless:"without state"},K=e=>Yt[e]??e,Qt={adopted:"Adopted",approved:"Approved",backfilled:"Backfilled",checked:"Checked",deployed:"Deployed",deploying:"Redeploy begun",disposed:"Savepoint deleted",failed:"Failed",interrupted:"Interrupted",migrated:"Savepoint migrated",migrating:"Migrating the savepoint",planned:"Plan only",rehearsed:"Rehearsed",rejected:"Rejected","rolled-back":"Rolled back","rolling-back":"Rolling back",started:"Job started",starting:"Starting the job",stopped:"Job stopped",stopping:"Stopping the job",unchanged:"Unchanged"},H=e=>Qt[e]??e,Zt={compatible:"The state fits.",partial:"A part of the state fits, the rest begins anew.",unknown:"It cannot be told whether the state fits.",incompatible:"The state does not fit."},ue=e=>Zt[e]??"",ce=e=>`${e.range_from??"the beginning"} to ${e.range_to??"the end"}`,me=e=>Object.entries(e.counts).map(([n,r])=>`${r.toLocaleString()} ${n}`).join(", ");function c({to:e,children:n,className:r}){let o=ae();return t.createElement("a",{className:r,href:Q(e),onClick:i=>{i.button||i.metaKey||i.ctrlKey||i.shiftKey||i.altKey||(i.preventDefault(),o(e))}},n)}function ge({href:e,children:n}){return!e||!/^https?:\/\//i.test(e)?t.createElement(t.Fragment,null,n):t.createElement("a",{href:e,rel:"noreferrer",target:"_blank"},n,t.createElement("span",{"aria-hidden":"true"}," ↗"),t.createElement("span",{className:"fc-hidden"}," (opens in a new tab)"))}function T({run:e,task:n=!1}){return t.createElement(c,{to:n&&e.task_id?Se(e,e.task_id):le(e)},e.dag_id," / ",e.run_id,n&&e.task_id?` / ${e.task_id}`:"")}var rt=720;function he(){let e=Ye(null),[n,r]=v(()=>window.innerWidth<rt);return O(()=>{let o=new ResizeObserver(([i])=>i&&r(i.contentRect.width<rt));return e.current&&o.observe(e.current),()=>o.disconnect()},[]),[e,n]}function ot(){let[e,n]=v(Date.now);return O(()=>{let r=setInterval(()=>n(Date.now()),6e4);return()=>clearInterval(r)},[]),e}function b({at:e}){return t.createElement("time",{dateTime:e,title:fe(e)},Le(e,ot())," ago")}function U({since:e}){return t.createElement("time",{dateTime:e,title:`since ${fe(e)}`},"for ",Le(e,ot()))}function it({text:e}){return t.createElement(t.Fragment,null,e.split(/`([^`\n]+)`/).map((n,r)=>r%2?t.createElement("code",{key:r},n):n))}function j({at:e}){return t.createElement("time",{dateTime:e},fe(e))}function y({tone:e,children:n,title:r}){return t.createElement("span",{className:`fc-badge fc-${e}`,title:r},n)}var Xt={compatible:"good",partial:"fair",unknown:"doubt",incompatible:"bad"};function _({outcome:e}){return t.createElement(y,{tone:Xt[e]??"plain",title:ue(e)},e)}function x({id:e}){return t.createElement("code",{title:De(e)===e?void 0:e,className:"fc-id"},De(e))}function Kt({failure:e,again:n}){return t.createElement("div",{className:"fc-note fc-note-bad",role:"alert"},t.createElement("p",null,e.title),e.detail&&t.createElement("p",{className:"fc-muted"},e.detail),t.createElement("button",{type:"button",className:"fc-button",onClick:n},"Try again"))}function I({answer:e,children:n}){return e.failure?t.createElement(Kt,{failure:e.failure,again:e.again}):e.data===void 0?t.createElement("p",{className:"fc-muted",role:"status"},"Reading the ledger …"):t.createElement(t.Fragment,null,n(e.data))}function g({title:e,children:n,aside:r}){return t.createElement("section",{className:"fc-section"},t.createElement("div",{className:"fc-section-head"},t.createElement("h2",null,e),r),n)}function w({facts:e}){return t.createElement("dl",{className:"fc-facts"},e.filter(([,n])=>n!=null&&n!==""&&n!==!1).map(([n,r])=>t.createElement("div",{key:n},t.createElement("dt",null,n),t.createElement("dd",null,r))))}function V({caption:e,heads:n,bodies:r,children:o}){return t.createElement("div",{className:"fc-scroll",role:"region","aria-label":e,tabIndex:0},t.createElement("table",{className:"fc-table"},t.createElement("caption",{className:"fc-hidden"},e),t.createElement("thead",null,t.createElement("tr",null,n.map(i=>t.createElement("th",{key:i,scope:"col"},i)))),r?o:t.createElement("tbody",null,o)))}var Rt=/([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])/;function Ae({text:e}){return t.createElement(t.Fragment,null,e.split(Rt).map((n,r)=>r%2?t.createElement("span",{key:r,className:"fc-unseen"},"U+",n.codePointAt(0).toString(16).toUpperCase().padStart(4,"0")):n))}function M({text:e,label:n}){return t.createElement("pre",{className:"fc-code",tabIndex:0,role:"region","aria-label":n},t.createElement(Ae,{text:e}))}function R({title:e,above:n,children:r}){return t.createElement("div",{className:"fc-root fc-page"},n&&t.createElement("nav",{className:"fc-above","aria-label":"Pages above this one"},n),t.createElement("h1",null,e),r)}var st={waiting:"This change waits for a decision.",approved:"Approved",rejected:"Rejected","not asked":"Nobody was asked: the policy decided.","not decided":"Nobody decided: another version came, or this one failed by itself."};function at({decision:e}){return e.state==="waiting"?t.createElement("div",{className:"fc-note fc-note-ask"},t.createElement("p",null,t.createElement("b",null,st.waiting)),e.run?t.createElement(en,{run:e.run}):t.createElement("p",null,"It is asked by a run that you may not see, or by another Airflow.")):t.createElement("div",{className:"fc-note"},t.createElement("p",null,t.createElement("b",null,st[e.state]),e.by&&` by ${e.by}`,e.at&&t.createElement(t.Fragment,null,", ",t.createElement(j,{at:e.at}))),e.reason&&t.createElement("p",null,"Reason: ",e.reason),e.message&&t.createElement("p",{className:"fc-muted"},e.message),e.run&&t.createElement("p",null,"Run: ",t.createElement(T,{run:e.run})))}function en({run:e}){let n=P(tt(e),30).data?.hitl_details??[];return n.length?t.createElement(t.Fragment,null,n.map(({task_instance:{task_id:r,map_index:o},options:i})=>t.createElement("p",{key:`${r}/${o}`,className:"fc-ask"},t.createElement(c,{className:"fc-button fc-primary",to:Ke(e,r)},"Decide in Airflow"),t.createElement("span",{className:"fc-muted"},i.join(" · "))))):t.createElement("p",null,"The question is asked in ",t.createElement(T,{run:e}),".")}var Oe=e=>e&&Array.isArray(e.findings)&&e.old&&e.new?e:null;var W=class{diff(n,r,o={}){let i;typeof o=="function"?(i=o,o={}):"callback"in o&&(i=o.callback);let s=this.castInput(n,o),a=this.castInput(r,o),d=this.removeEmpty(this.tokenize(s,o)),l=this.removeEmpty(this.tokenize(a,o));return this.diffWithOptionsObj(d,l,o,i)}diffWithOptionsObj(n,r,o,i){var s;let a=p=>{if(p=this.postProcess(p,o),i){setTimeout(function(){i(p)},0);return}else return p},d=r.length,l=n.length,f=1,u=d+l;o.maxEditLength!=null&&(u=Math.min(u,o.maxEditLength));let E=(s=o.timeout)!==null&&s!==void 0?s:1/0,L=Date.now()+E,k=[{oldPos:-1,lastComponent:void 0}],D=this.extractCommon(k[0],r,n,0,o);if(k[0].oldPos+1>=l&&D+1>=d)return a(this.buildValues(k[0].lastComponent,r,n));let re=-1/0,J=1/0,m=()=>{for(let p=Math.max(re,-f);p<=Math.min(J,f);p+=2){let h,C=k[p-1],A=k[p+1];C&&(k[p-1]=void 0);let Y=!1;if(A){let Ge=A.oldPos-p;Y=A&&0<=Ge&&Ge<d}let qe=C&&C.oldPos+1<l;if(!Y&&!qe){k[p]=void 0;continue}if(!qe||Y&&C.oldPos<A.oldPos?h=this.addToPath(A,!0,!1,0,o):h=this.addToPath(C,!1,!0,1,o),D=this.extractCommon(h,r,n,p,o),h.oldPos+1>=l&&D+1>=d)return a(this.buildValues(h.lastComponent,r,n))||!0;k[p]=h,h.oldPos+1>=l&&(J=Math.min(J,p-1)),D+1>=d&&(re=Math.max(re,p+1))}f++};if(i)(function p(){setTimeout(function(){if(f>u||Date.now()>L)return i(void 0);m()||p()},0)})();else for(;f<=u&&Date.now()<=L;){let p=m();if(p)return p}}addToPath(n,r,o,i,s){let a=n.lastComponent;return a&&!s.oneChangePerToken&&a.added===r&&a.removed===o?{oldPos:n.oldPos+i,lastComponent:{count:a.count+1,added:r,removed:o,previousComponent:a.previousComponent}}:{oldPos:n.oldPos+i,lastComponent:{count:1,added:r,removed:o,previousComponent:a}}}extractCommon(n,r,o,i,s){let a=r.length,d=o.length,l=n.oldPos,f=l-i,u=0;for(;f+1<a&&l+1<d&&this.equals(o[l+1],r[f+1],s);)f++,l++,u++,s.oneChangePerToken&&(n.lastComponent={count:1,previousComponent:n.lastComponent,added:!1,removed:!1});return u&&!s.oneChangePerToken&&(n.lastComponent={count:u,previousComponent:n.lastComponent,added:!1,removed:!1}),n.oldPos=l,f}equals(n,r,o){return o.comparator?o.comparator(n,r):n===r||!!o.ignoreCase&&n.toLowerCase()===r.toLowerCase()}removeEmpty(n){let r=[];for(let o=0;o<n.length;o++)n[o]&&r.push(n[o]);return r}castInput(n,r){return n}tokenize(n,r){return Array.from(n)}join(n){return n.join("")}postProcess(n,r){return n}get useLongestToken(){return!1}buildValues(n,r,o){let i=[],s;for(;n;)i.push(n),s=n.previousComponent,delete n.previousComponent,n=s;i.reverse();let a=i.length,d=0,l=0,f=0;for(;d<a;d++){let u=i[d];if(u.removed)u.value=this.join(o.slice(f,f+u.count)),f+=u.count;else{if(!u.added&&this.useLongestToken){let E=r.slice(l,l+u.count);E=E.map(function(L,k){let D=o[f+k];return D.length>L.length?D:L}),u.value=this.join(E)}else u.value=this.join(r.slice(l,l+u.count));l+=u.count,u.added||(f+=u.count)}}return i}};function $e(e,n){let r;for(r=0;r<e.length&&r<n.length;r++)if(e[r]!=n[r])return e.slice(0,r);return e.slice(0,r)}function Ee(e,n){let r;if(!e||!n||e[e.length-1]!=n[n.length-1])return"";for(r=0;r<e.length&&r<n.length;r++)if(e[e.length-(r+1)]!=n[n.length-(r+1)])return e.slice(-r);return e.slice(-r)}function be(e,n,r){if(e.slice(0,n.length)!=n)throw Error(`string ${JSON.stringify(e)} doesn't start with prefix ${JSON.stringify(n)}; this is a bug`);return r+e.slice(n.length)}function ye(e,n,r){if(!n)return e+r;if(e.slice(-n.length)!=n)throw Error(`string ${JSON.stringify(e)} doesn't end with suffix ${JSON.stringify(n)}; this is a bug`);return e.slice(0,-n.length)+r}function ee(e,n){return be(e,n,"")}function ie(e,n){return ye(e,n,"")}function Ce(e,n){return n.slice(0,tn(e,n))}function tn(e,n){let r=0;e.length>n.length&&(r=e.length-n.length);let o=n.length;e.length<n.length&&(o=e.length);let i=Array(o),s=0;i[0]=0;for(let a=1;a<o;a++){for(n[a]==n[s]?i[a]=i[s]:i[a]=s;s>0&&n[a]!=n[s];)s=i[s];n[a]==n[s]&&s++}s=0;for(let a=r;a<e.length;a++){for(;s>0&&e[a]!=n[s];)s=i[s];e[a]==n[s]&&s++}return s}function Fe(e,n){let r=[];for(let o of Array.from(n.segment(e))){let i=o.segment;r.length&&/\s/.test(r[r.length-1])&&/\s/.test(i)?r[r.length-1]+=i:r.push(i)}return r}function xe(e,n){if(n)return te(e,n)[1];let r;for(r=e.length-1;r>=0&&e[r].match(/\s/);r--);return e.substring(r+1)}function z(e,n){if(n)return te(e,n)[0];let r=e.match(/^\s*/);return r?r[0]:""}function te(e,n){if(!n)return[z(e),xe(e)];if(n.resolvedOptions().granularity!="word")throw new Error('The segmenter passed must have a granularity of "word"');let r=Fe(e,n),o=r[0],i=r[r.length-1],s=/\s/.test(o)?o:"",a=/\s/.test(i)?i:"";return[s,a]}var ve="a-zA-Z0-9_\\u{AD}\\u{C0}-\\u{D6}\\u{D8}-\\u{F6}\\u{F8}-\\u{2C6}\\u{2C8}-\\u{2D7}\\u{2DE}-\\u{2FF}\\u{1E00}-\\u{1EFF}",nn=new RegExp(`[${ve}]+|\\s+|[^${ve}]`,"ug"),Ie=class extends W{equals(n,r,o){return o.ignoreCase&&(n=n.toLowerCase(),r=r.toLowerCase()),n.trim()===r.trim()}tokenize(n,r={}){let o;if(r.intlSegmenter){let a=r.intlSegmenter;if(a.resolvedOptions().granularity!="word")throw new Error('The segmenter passed must have a granularity of "word"');o=Fe(n,a)}else o=n.match(nn)||[];let i=[],s=null;return o.forEach(a=>{/\s/.test(a)?s==null?i.push(a):i.push(i.pop()+a):s!=null&&/\s/.test(s)?i[i.length-1]==s?i.push(i.pop()+a):i.push(s+a):i.push(a),s=a}),i}join(n){return n.map((r,o)=>o==0?r:r.replace(/^\s+/,"")).join("")}postProcess(n,r){if(!n||r.oneChangePerToken)return n;let o=null,i=null,s=null;return n.forEach(a=>{a.added?i=a:a.removed?s=a:((i||s)&&lt(o,s,i,a,r.intlSegmenter),o=a,i=null,s=null)}),(i||s)&&lt(o,s,i,null,r.intlSegmenter),n}},rn=new Ie;function lt(e,n,r,o,i){if(n&&r){let[s,a]=te(n.value,i),[d,l]=te(r.value,i);if(e){let f=$e(s,d);e.value=ye(e.value,d,f),n.value=ee(n.value,f),r.value=ee(r.value,f)}if(o){let f=Ee(a,l);o.value=be(o.value,l,f),n.value=ie(n.value,f),r.value=ie(r.value,f)}}else if(r){if(e){let s=z(r.value,i);r.value=r.value.substring(s.length)}if(o){let s=z(o.value,i);o.value=o.value.substring(s.length)}}else if(e&&o){let s=z(o.value,i),[a,d]=te(n.value,i),l=$e(s,a);n.value=ee(n.value,l);let f=Ee(ee(s,l),d);n.value=ie(n.value,f),o.value=be(o.value,s,f),e.value=ye(e.value,s,s.slice(0,s.length-f.length))}else if(o){let s=z(o.value,i),a=xe(n.value,i),d=Ce(a,s);n.value=ie(n.value,d)}else if(e){let s=xe(e.value,i),a=z(n.value,i),d=Ce(s,a);n.value=ee(n.value,d)}}var Me=class extends W{tokenize(n){let r=new RegExp(`(\\r?\\n)|[${ve}]+|[^\\S\\n\\r]+|[^${ve}]`,"ug");return n.match(r)||[]}},dt=new Me;function je(e,n,r){return dt.diff(e,n,r)}var We=class extends W{constructor(){super(...arguments),this.tokenize=on}equals(n,r,o){return o.ignoreWhitespace?((!o.newlineIsToken||!n.includes(`
`))&&(n=n.trim()),(!o.newlineIsToken||!r.includes(`
`))&&(r=r.trim())):o.ignoreNewlineAtEof&&!o.newlineIsToken&&(n.endsWith(`
`)&&(n=n.slice(0,-1)),r.endsWith(`
`)&&(r=r.slice(0,-1))),super.equals(n,r,o)}},ft=new We;function Be(e,n,r){return ft.diff(e,n,r)}function on(e,n){n.stripTrailingCr&&(e=e.replace(/\r\n/g,`
`));let r=[],o=e.split(/(\n|\r\n)/);o[o.length-1]||o.pop();for(let i=0;i<o.length;i++){let s=o[i];i%2&&!n.newlineIsToken?r[r.length-1]+=s:r.push(s)}return r}var sn=e=>{let n=e.split(`
`);return n.at(-1)===""&&n.pop(),n},an=.4,pt=2e3;function ln(e,n){if(e.length>pt||n.length>pt)return[[],[]];let r=[],o=[],[i,s,a]=[0,0,0];for(let{value:l,added:f,removed:u}of je(e,n))u?r.push({from:i,to:i+=l.length}):f?o.push({from:s,to:s+=l.length}):(i+=l.length,s+=l.length,a+=l.trim().length);let d=Math.max(e.trim().length,n.trim().length);return a>=d*an?[r,o]:[[],[]]}function ut(e,n){let r=[],[o,i]=[0,0],s=[],a=d=>{for(let l=0;l<Math.max(s.length,d.length);l++){let[f,u]=[s[l],d[l]],[E,L]=f!==void 0&&u!==void 0?ln(f,u):[[],[]];r.push({before:f===void 0?null:{number:++o,text:f,changed:E},after:u===void 0?null:{number:++i,text:u,changed:L},same:!1})}s=[]};for(let d of Be(e,n)){let l=sn(d.value);if(d.removed)a([]),s=l;else if(d.added)a(l);else{a([]);for(let f of l)r.push({before:{number:++o,text:f,changed:[]},after:{number:++i,text:f,changed:[]},same:!0})}}return a([]),r}function ct(e,n,r){let o=a=>Math.max(0,Math.min(e.length,a)),i=new Set([0,e.length]);for(let{from:a,to:d}of[...n,...r])i.add(o(a)),i.add(o(d));let s=[...i].sort((a,d)=>a-d);return s.slice(0,-1).map((a,d)=>{let l=s[d+1],f=u=>u.from<=a&&l<=u.to;return{text:e.slice(a,l),changed:n.some(f),marks:r.filter(f).map(({mark:u})=>u)}})}function mt(e,n,r=3,o=4){let i=e.map(()=>!1);e.forEach((a,d)=>{if(!(a.same&&!n(a)))for(let l=d-r;l<=d+r;l++)l in i&&(i[l]=!0)});let s=[];return e.forEach((a,d)=>{let l=s.at(-1);l&&l.folded===!i[d]?l.rows.push(a):s.push({rows:[a],folded:!i[d]})}),s.map(a=>a.rows.length<o?{...a,folded:!1}:a)}function dn(e,n,r){return!e||e.source!==n||r.number<e.line||r.number>e.end_line?null:{from:r.number===e.line?e.column-1:0,to:r.number===e.end_line?e.end_column:r.text.length}}function fn(e,n){return e.after_span?.source===n.new.source?["after",e.after_span.end_line]:e.before_span?.source===n.old.source?["before",e.before_span.end_line]:null}var we={before:"Runs now",after:"Proposed"};function gt({old:e,new:n,report:r}){let[o,i]=he(),[s,a]=v(!1),[d,l]=v([]),f=Je(()=>ut(e.script,n.script),[e.script,n.script]),u=(r?.findings??[]).map((m,p)=>({finding:m,mark:p+1})),E=u.map(m=>({...m,place:r&&fn(m.finding,r)})),L=m=>E.filter(({place:p})=>p&&m[p[0]]?.number===p[1]).map(({finding:p,mark:h})=>({finding:p,mark:h})),k=mt(f,m=>L(m).length>0),D=(m,p)=>u.flatMap(({finding:h,mark:C})=>{let A=r&&!h.overruled_by&&dn(h[`${p}_span`],p==="before"?r.old.source:r.new.source,m);return A?[{...A,mark:C}]:[]}),re=k.some((m,p)=>m.folded&&!d.includes(p)),J=i?3:4;return t.createElement("div",{ref:o,className:"fc-scroll fc-frame",role:"region","aria-label":"Scripts compared",tabIndex:0},t.createElement("table",{className:`fc-diff ${i?"fc-unified":"fc-split"}`},t.createElement("caption",{className:"fc-hidden"},"The script that runs now and the proposed one"),t.createElement("colgroup",null,(i?["fc-numbers","fc-numbers",""]:["fc-numbers","","fc-numbers",""]).map((m,p)=>t.createElement("col",{key:p,className:m}))),t.createElement("thead",null,t.createElement("tr",null,i?t.createElement(t.Fragment,null,t.createElement("th",{scope:"col",colSpan:2},"Lines"),t.createElement("th",{scope:"col"},we.before," (−) and ",we.after.toLowerCase()," (+)")):t.createElement(t.Fragment,null,t.createElement("th",{scope:"colgroup",colSpan:2},we.before),t.createElement("th",{scope:"colgroup",colSpan:2},we.after)))),k.map((m,p)=>t.createElement("tbody",{key:p},m.folded&&!s&&!d.includes(p)?t.createElement("tr",{className:"fc-fold"},t.createElement("td",{colSpan:J},t.createElement("button",{type:"button",onClick:()=>l([...d,p])},"Show ",S(m.rows.length,"unchanged line")))):m.rows.map((h,C)=>t.createElement(t.Fragment,{key:C},i?t.createElement(mn,{row:h,marksOf:D}):t.createElement(cn,{row:h,marksOf:D}),L(h).map(({finding:A,mark:Y})=>t.createElement("tr",{key:Y,className:"fc-remark"},t.createElement("td",{colSpan:J},t.createElement(pn,{finding:A,mark:Y}))))))))),re&&!s&&t.createElement("button",{type:"button",className:"fc-button fc-all",onClick:()=>a(!0)},"Show all lines"))}function pn({finding:e,mark:n}){return t.createElement("div",{className:e.overruled_by?"fc-remark-text fc-muted":"fc-remark-text"},t.createElement("a",{href:`#finding-${n}`,onClick:r=>un(r,n),"aria-label":`Finding ${n}`},n),!e.overruled_by&&t.createElement(_,{outcome:e.outcome}),t.createElement("span",null,t.createElement("b",null,e.title??e.rule,".")," ",e.message))}function un(e,n){e.preventDefault();let r=document.getElementById(`finding-${n}`);r?.scrollIntoView({block:"center"}),r?.focus({preventScroll:!0})}function cn({row:e,marksOf:n}){return t.createElement("tr",null,["before","after"].map(r=>{let o=e[r],i=e.same?"":o?`fc-${r}`:"fc-void";return t.createElement(t.Fragment,{key:r},t.createElement("td",{className:`fc-number ${i}`},o?.number),t.createElement("td",{className:`fc-line ${i}`},o&&t.createElement(He,{line:o,marks:n(o,r),side:e.same?null:r})))}))}function mn({row:e,marksOf:n}){return e.same&&e.before&&e.after?t.createElement("tr",null,t.createElement("td",{className:"fc-number"},e.before.number),t.createElement("td",{className:"fc-number"},e.after.number),t.createElement("td",{className:"fc-line"},t.createElement(He,{line:e.after,marks:n(e.after,"after"),side:null}))):t.createElement(t.Fragment,null,["before","after"].map(r=>{let o=e[r];return o?t.createElement("tr",{key:r},t.createElement("td",{className:`fc-number fc-${r}`},r==="before"?o.number:""),t.createElement("td",{className:`fc-number fc-${r}`},r==="after"?o.number:""),t.createElement("td",{className:`fc-line fc-${r}`},t.createElement(He,{line:o,marks:n(o,r),side:r}))):null}))}var gn={before:"del",after:"ins"};function He({line:e,marks:n,side:r}){return t.createElement(t.Fragment,null,r&&t.createElement("span",{className:"fc-hidden"},r==="before"?"removed: ":"added: "),ct(e.text,e.changed,n).map((o,i)=>{let s=o.changed&&r?gn[r]:"span";return t.createElement(s,{key:i,className:o.marks.length?"fc-clause":void 0},t.createElement(Ae,{text:o.text}))}))}var ht=e=>e?`${e.source}:${e.line}:${e.column}`:"",bt={flink:"Apache Flink",vvr:"Alibaba's VVR"};function xt({report:e}){return t.createElement("div",{className:"fc-verdict"},t.createElement("p",null,t.createElement(_,{outcome:e.outcome})," ",ue(e.outcome)," ",t.createElement("span",{className:"fc-muted"},"Judged for ",bt[e.engine]??e.engine," ",e.engine_version,e.other_engine&&t.createElement(t.Fragment,null,"; ",bt[e.other_engine.engine]??e.other_engine.engine,": ",e.other_engine.outcome),".")),e.warnings.length>0&&t.createElement("ul",{className:"fc-bullets"},e.warnings.map((n,r)=>t.createElement("li",{key:r},n))))}function vt({report:e}){return t.createElement(g,{title:"Findings"},t.createElement("ol",{className:"fc-findings"},e.findings.map((n,r)=>t.createElement("li",{key:r,id:`finding-${r+1}`,tabIndex:-1,className:n.overruled_by?"fc-muted":""},t.createElement(hn,{finding:n,number:r+1})))))}function hn({finding:e,number:n}){return t.createElement(t.Fragment,null,t.createElement("h3",null,n,". ",e.title??e.rule," ",t.createElement(_,{outcome:e.outcome})),t.createElement("p",null,e.message),t.createElement(w,{facts:[["Before",e.before&&t.createElement("code",null,e.before)],["After",e.after&&t.createElement("code",null,e.after)],["Place",[ht(e.before_span),ht(e.after_span)].filter(Boolean).join(" → ")],["If it were resumed",e.consequence],["Known",[e.basis,e.source].filter(Boolean).join(": ")],["Rule",t.createElement("code",{key:"rule"},e.rule)],["Overruled by",e.overruled_by&&t.createElement("code",null,e.overruled_by)]]}))}var bn={same:"good",kept:"good",moved:"fair","starts from zero":"fair",added:"doubt","cannot be told":"doubt",dropped:"bad",removed:"bad"};function yn(e){let[n,r]=[e.before?.window??"",e.after?.window??""],o=n||r;return[...o?[{what:"window",name:n===r?o:`${n||"none"} → ${r||"none"}`,fate:n===r?"same":"changed"}]:[],...e.keys.map(({key:i,fate:s})=>({what:"key",name:i,fate:s})),...e.metrics.map(({metric:i,fate:s})=>({what:"metric",name:i,fate:s})),...(e.rows??[]).map(({rows:i,fate:s})=>({what:"rows",name:i,fate:s})),...(e.parts??[]).map(({part:i,before:s,after:a})=>({what:i,name:`${s||"none"} → ${a||"none"}`,fate:"changed"}))]}function wt({operators:e}){return e.length?t.createElement(g,{title:"What becomes of the state"},t.createElement(V,{caption:"State by operator",heads:["Part","Name","Fate"],bodies:!0},e.map(n=>t.createElement("tbody",{key:n.path},t.createElement("tr",null,t.createElement("th",{scope:"rowgroup",colSpan:3},t.createElement(xn,{one:n}))),yn(n).map((r,o)=>t.createElement("tr",{key:o},t.createElement("td",null,r.what),t.createElement("td",null,t.createElement("code",null,r.name)),t.createElement("td",null,t.createElement(y,{tone:bn[r.fate]??"fair"},r.fate)))))))):null}function xn({one:e}){let[n,r]=[e.before?.kind,e.after?.kind];return t.createElement("div",{className:"fc-stack"},t.createElement("span",null,n===r?n:n?r?`${n} → ${r}`:`gone: ${n}`:`new: ${r}`," ",t.createElement(_,{outcome:e.outcome})," ",t.createElement("span",{className:"fc-muted"},e.path)),e.consequence&&t.createElement("span",{className:"fc-plain-text"},"If it were resumed: ",e.consequence,e.resumed?.length?`; ${e.resumed.join("; ")}`:""))}var yt={whole:"A rewritten savepoint would keep all of the state.",partial:"A rewritten savepoint would keep a part of the state.",none:"A rewritten savepoint would keep nothing."};function kt({migration:e,title:n}){return t.createElement(g,{title:n},yt[e.kept]&&t.createElement("p",null,yt[e.kept]),t.createElement(Ue,{operators:e.operators??[]}))}function Ue({operators:e}){return t.createElement(V,{caption:"What a migration keeps",heads:["Operator","State","Goes on","Begins","Gone"]},e.map((n,r)=>t.createElement("tr",{key:r},t.createElement("th",{scope:"row"},n.operator),t.createElement("td",null,n.state,n.reason&&t.createElement("span",{className:"fc-muted"},": ",n.reason)),[n.keeps,n.begins,n.gone].map((o,i)=>t.createElement("td",{key:i},o?.length?t.createElement("code",null,o.join(", ")):"–")))))}function Nt({report:e}){let n=e.sources??[];return n.length?t.createElement(g,{title:"Where the sources begin without state"},t.createElement(w,{facts:n.map(({table:r,begins:o})=>[r,o])})):null}function St({change:e}){return t.createElement(t.Fragment,null,e.next_steps.length>0&&t.createElement(g,{title:"What to do next"},t.createElement("ol",{className:"fc-steps"},e.next_steps.map((n,r)=>t.createElement("li",{key:r},t.createElement("p",null,t.createElement(it,{text:n.text})),n.commands.length>0&&t.createElement(M,{text:n.commands.join(`
`),label:`Commands of step ${r+1}`}))))),e.if_resumed.length>0&&t.createElement(g,{title:"If it were resumed all the same"},t.createElement("ul",{className:"fc-bullets"},e.if_resumed.map((n,r)=>t.createElement("li",{key:r},n)))))}var Tt=30;function _t({ledger:e,deployment:n,number:r}){let o=P(Re(e,n,r),Tt);return t.createElement(R,{title:`Change of ${n}`,above:t.createElement(t.Fragment,null,t.createElement(c,{to:N()},"Flink deployments"),t.createElement("span",{"aria-hidden":"true"},"/"),t.createElement(c,{to:B(e,n)},n))},t.createElement(I,{answer:o},i=>t.createElement(Lt,{change:i})))}function Lt({change:e}){let n=Oe(e.report),{checked:r}=e;return t.createElement(t.Fragment,null,n&&t.createElement(xt,{report:n}),e.report_error&&t.createElement("p",{className:"fc-note fc-note-bad"},"The report cannot be read: ",e.report_error),t.createElement(at,{decision:e.decision}),t.createElement(w,{facts:[["Checked",r&&t.createElement(b,{at:r.at})],["Version",t.createElement(x,{key:"version",id:e.sha256})],["Commit",r?.commit&&t.createElement(x,{id:r.commit})],["Author",r?.author],["Way taken",r?.branch],["Run",r?.run&&t.createElement(T,{run:r.run})]]}),t.createElement(vn,{change:e}),n&&t.createElement(vt,{report:n}),n&&t.createElement(wt,{operators:n.operators??[]}),n?.migration&&t.createElement(kt,{migration:n.migration,title:"What a migration would keep"}),t.createElement(St,{change:e}),n&&t.createElement(Nt,{report:n}),t.createElement(kn,{entries:e.entries}))}function vn({change:e}){let{old:n,new:r}=e;return!n&&!r?null:r?n?t.createElement(g,{title:"Script"},n.script===r.script&&t.createElement("p",{className:"fc-muted"},"The script itself is the same."),t.createElement(gt,{old:n,new:r,report:Oe(e.report)}),t.createElement(wn,{old:n,proposed:r})):t.createElement(g,{title:"Script"},t.createElement("p",{className:"fc-muted"},"Nothing ran before: this is the first version."),t.createElement(M,{text:r.script,label:"Proposed script"})):t.createElement(g,{title:"Script"},t.createElement("p",{className:"fc-note"},"The text of the proposed version was not kept. This one runs now:"),t.createElement(M,{text:n?.script??"",label:"Script that runs now"}))}var Pt=e=>typeof e=="string"?e:JSON.stringify(e,null,1);function wn({old:e,proposed:n}){let r=[],o=(i,s,a)=>{let[d,l]=[s===void 0?"–":Pt(s),a===void 0?"–":Pt(a)];d!==l&&r.push([i,t.createElement(t.Fragment,null,t.createElement("del",null,d)," → ",t.createElement("ins",null,l))])};for(let i of["settings","variables","files"])for(let s of new Set([...Object.keys(e[i]),...Object.keys(n[i])]))o(`${i}: ${s}`,e[i][s],n[i][s]);for(let i of["engine","engine_version","language","catalog"])o(i,e[i],n[i]);return o("functions",e.functions,n.functions),r.length?t.createElement("div",{className:"fc-beside"},t.createElement("h3",null,"Beside the script"),t.createElement(w,{facts:r})):null}function kn({entries:e}){return t.createElement(g,{title:"What the ledger says of it"},t.createElement("ol",{className:"fc-list"},e.map(n=>t.createElement("li",{key:n.number},t.createElement("span",{className:"fc-muted"},"#",n.number," ",t.createElement(j,{at:n.at})),t.createElement("b",null,H(n.kind)),n.approved_by&&t.createElement("span",null,"by ",n.approved_by),n.reason&&t.createElement("span",null,"“",n.reason,"”"),n.message&&t.createElement("span",{className:"fc-muted"},n.message)))))}function Dt({dagId:e,runId:n,taskId:r}){let o=P(e&&n?et(e,n,r):void 0,Tt);return t.createElement("div",{className:"fc-root fc-page"},t.createElement(I,{answer:o},({changes:i})=>i.length===0?t.createElement("div",{className:"fc-note"},t.createElement("p",null,"No change of a Flink deployment belongs to this run."),t.createElement("p",null,"One appears here once a task of the run has checked or deployed a Flink job."," ",t.createElement(c,{to:N()},"All Flink deployments"))):i.map(s=>t.createElement("article",{key:`${s.ledger}/${s.deployment}/${s.number}`},t.createElement("h1",null,"Change of ",t.createElement(c,{to:B(s.ledger,s.deployment)},s.deployment)),t.createElement(Lt,{change:s}),t.createElement("p",null,t.createElement(c,{to:F(s.ledger,s.deployment,s.number)},"This change on a page of its own"))))))}function q({one:e}){let n=e.pending??e.checked;return n?t.createElement("div",{className:"fc-stack"},t.createElement(c,{to:F(e.ledger,e.deployment,n.number)},n.outcome?t.createElement(_,{outcome:n.outcome}):"first version",t.createElement("span",{className:"fc-hidden"}," change of ",e.deployment)),e.pending&&t.createElement("span",null,"waits ",t.createElement(U,{since:e.pending.at}))):t.createElement("span",{className:"fc-muted"},"–")}function G({one:e}){return t.createElement("div",{className:"fc-stack"},e.unfinished&&t.createElement("span",null,t.createElement(y,{tone:e.unfinished_state==="interrupted"?"bad":"busy"},e.unfinished_state)," ",H(e.unfinished.kind).toLowerCase(),", ",t.createElement(b,{at:e.unfinished.at})),e.failed&&t.createElement("span",null,t.createElement(y,{tone:"bad"},e.entry?.kind==="rolled-back"?"rolled back":"failed")," ",t.createElement(b,{at:e.failed.at}),e.failed.message&&t.createElement("span",{className:"fc-clip"},e.failed.message)))}var Nn=25;function Sn(e){let n=new Set(e.redeploys.flatMap(r=>r.steps.map(({number:o})=>o)));return[...e.redeploys.map(r=>({number:r.last,redeploy:r})),...e.history.filter(({number:r})=>!n.has(r)).map(r=>({number:r.number,entry:r}))].sort((r,o)=>o.number-r.number)}function At({page:e}){let[n,r]=v(!1),o=Sn(e),i=n?o:o.slice(0,Nn),s=a=>F(e.summary.ledger,e.summary.deployment,a);return t.createElement(t.Fragment,null,t.createElement("ol",{className:"fc-timeline"},i.map(a=>"redeploy"in a?t.createElement(Tn,{key:a.number,one:a.redeploy,page:e,to:s}):t.createElement(Dn,{key:a.number,entry:a.entry,to:s}))),i.length<o.length&&t.createElement("button",{type:"button",className:"fc-button",onClick:()=>r(!0)},"Show ",S(o.length-i.length,"earlier event")))}var Pn={deployed:["good","Deployed"],adopted:["good","Adopted"],"rolled-back":["bad","Rolled back"],failed:["bad","Failed"],planned:["plain","Plan only"],unfinished:["busy","Not ended"]};function Tn({one:e,page:n,to:r}){let o=e.steps.findLast(({kind:l})=>l==="failed")?.number,i=e.message||n.history.find(({number:l})=>l===o)?.message,[s,a]=Pn[e.end],d=(Date.parse(e.ended_at)-Date.parse(e.began_at))/1e3;return t.createElement("li",null,t.createElement("div",{className:"fc-event"},t.createElement(y,{tone:s},a),t.createElement(c,{to:r(e.last)},"version ",t.createElement(x,{id:e.sha256})),e.outcome&&t.createElement(_,{outcome:e.outcome}),e.start_mode&&t.createElement("span",null,K(e.start_mode)),t.createElement("span",{className:"fc-muted"},"#",e.first===e.last?e.last:`${e.first}–${e.last}`,", ",t.createElement(b,{at:e.ended_at}))),i&&t.createElement("p",{className:"fc-muted"},i),t.createElement(w,{facts:[["Downtime",e.downtime_seconds!==null&&_e(e.downtime_seconds)],["Approved by",e.approved_by],["Reason",e.reason],["Job",e.job_id&&t.createElement(x,{id:e.job_id})],["Run",e.run&&t.createElement(T,{run:e.run,task:!0})]]}),e.steps.length>1&&t.createElement("details",null,t.createElement("summary",null,S(e.steps.length,"step")," in ",_e(d)),t.createElement("ol",{className:"fc-trail"},e.steps.map(l=>t.createElement("li",{key:l.number},H(l.kind)," ",t.createElement("span",{className:"fc-muted"},t.createElement(j,{at:l.at})))))))}var _n={approved:"good",rejected:"bad",failed:"bad",interrupted:"bad"},Ln=new Set(["checked","approved","rejected","failed","rehearsed","backfilled","unchanged"]);function Dn({entry:e,to:n}){let r=e.rehearsal.finding;return t.createElement("li",null,t.createElement("div",{className:"fc-event"},t.createElement(y,{tone:_n[e.kind]??"plain"},H(e.kind)),e.sha256&&Ln.has(e.kind)&&t.createElement(c,{to:n(e.number)},"version ",t.createElement(x,{id:e.sha256})),e.outcome&&t.createElement(_,{outcome:e.outcome}),typeof r=="string"&&t.createElement("b",null,r),t.createElement("span",{className:"fc-muted"},"#",e.number,", ",t.createElement(b,{at:e.at}))),e.message&&t.createElement("p",{className:"fc-muted"},e.message),t.createElement(w,{facts:[["Way taken",e.branch],["By",e.approved_by],["Reason",e.reason],["Author",e.kind==="checked"&&e.author],["Commit",e.kind==="checked"&&e.commit&&t.createElement(x,{id:e.commit})],["Savepoint",e.savepoint&&t.createElement("code",null,e.savepoint)],["Range",e.kind==="backfilled"&&ce(e)],["Counts",me(e)],["Run",e.run&&t.createElement(T,{run:e.run,task:!0})]]}))}var An=30;function Ot({ledger:e,deployment:n}){let r=P(Te(e,n),An);return t.createElement(R,{title:n,above:t.createElement(c,{to:N()},"Flink deployments")},t.createElement(I,{answer:r},o=>t.createElement(t.Fragment,null,t.createElement(On,{page:o}),t.createElement(g,{title:"History"},t.createElement(At,{page:o})),t.createElement($n,{page:o}),t.createElement(Fn,{page:o}),t.createElement(In,{page:o}),t.createElement(Mn,{page:o}),t.createElement(jn,{page:o}))))}function On({page:{summary:e}}){let{entry:n}=e;return t.createElement(t.Fragment,null,e.pending&&t.createElement("div",{className:"fc-note fc-note-ask"},t.createElement("p",null,t.createElement("b",null,"A change waits for a decision"),", ",t.createElement(U,{since:e.pending.at}),"."," ",t.createElement(c,{to:F(e.ledger,e.deployment,e.pending.number)},"See it and decide"))),t.createElement(w,{facts:[["Engine",n&&pe(n)],["Job",n?.job_id&&t.createElement(ge,{href:e.job_url},t.createElement(x,{id:n.job_id}))],["Runs like this",n&&t.createElement(U,{since:n.at})],["Started",n?.start_mode&&K(n.start_mode)],["Approved by",n?.approved_by],["Team",e.team],["Owner",e.owned_by],["Last check",e.checked&&!e.pending&&t.createElement(q,{one:e})],["Redeploy",(e.unfinished||e.failed)&&t.createElement(G,{one:e})],["Last savepoint",e.savepoint&&t.createElement(t.Fragment,null,t.createElement(b,{at:e.savepoint.taken_at}),e.savepoint.bytes!==null&&`, ${oe(e.savepoint.bytes)}`)],["DAGs",e.dags.length>0&&e.dags.map((r,o)=>t.createElement(t.Fragment,{key:r},o>0&&", ",t.createElement(c,{to:Ne(r)},r)))],["Last run",n?.run&&t.createElement(T,{run:n.run,task:!0})]]}))}function $n({page:e}){return e.savepoints.length?t.createElement(g,{title:"Savepoints"},t.createElement("ol",{className:"fc-timeline"},[...e.savepoints].reverse().map(n=>t.createElement("li",{key:n.stopped},t.createElement(En,{one:n,page:e}))))):null}function En({one:e,page:n}){let o=(i=>n.history.find(s=>s.number===i)?.job_id)(e.left_by);return t.createElement(t.Fragment,null,t.createElement("div",{className:"fc-event"},t.createElement("code",{className:"fc-path"},e.path),e.way_back&&t.createElement(y,{tone:"good"},"way back"),e.disposed!==null?t.createElement(y,{tone:"plain"},"deleted"):t.createElement(y,{tone:"plain"},"kept")),t.createElement("p",{className:"fc-muted"},"Taken ",t.createElement(b,{at:e.taken_at}),e.bytes!==null&&`, ${oe(e.bytes)}`,", when"," ",o?t.createElement(t.Fragment,null,"job ",t.createElement(x,{id:o})):"the job"," ","stopped (#",e.stopped,")",e.disposed!==null&&`; deleted by #${e.disposed}`),e.migrated_to&&t.createElement("p",null,"Rewritten to ",t.createElement("code",{className:"fc-path"},e.migrated_to)),e.starts.length>0?t.createElement("ul",{className:"fc-branches"},e.starts.map(i=>t.createElement("li",{key:i.number},t.createElement(y,{tone:i.kind==="rolled-back"?"bad":"good"},i.kind==="rolled-back"?"way back taken":"started")," ",i.job_id&&t.createElement(t.Fragment,null,"job ",t.createElement(x,{id:i.job_id}))," ",i.migrated&&"from the rewritten savepoint ",t.createElement("span",{className:"fc-muted"},"#",i.number,", ",t.createElement(j,{at:i.at}))))):t.createElement("p",{className:"fc-muted"},"Nothing started from it."))}var Ve=(e,n)=>e.history.filter(r=>r.kind===n).reverse(),Cn=e=>e==null?"":typeof e=="object"?JSON.stringify(e):String(e);function Fn({page:e}){let n=Ve(e,"rehearsed");return n.length?t.createElement(g,{title:"Rehearsals"},t.createElement("ol",{className:"fc-list"},n.map(r=>t.createElement("li",{key:r.number},t.createElement("b",null,Cn(r.rehearsal.finding)),typeof r.rehearsal.message=="string"&&t.createElement("span",null,r.rehearsal.message),t.createElement(c,{to:F(e.summary.ledger,e.summary.deployment,r.number)},"version ",t.createElement(x,{id:r.sha256})),t.createElement("span",{className:"fc-muted"},"#",r.number,", ",t.createElement(b,{at:r.at})))))):null}function In({page:e}){let n=Ve(e,"migrated");return n.length?t.createElement(g,{title:"Migrations of state"},n.map(r=>t.createElement("div",{key:r.number,className:"fc-stack"},t.createElement("p",null,t.createElement("code",{className:"fc-path"},r.savepoint??r.migrated_from)," →"," ",t.createElement("code",{className:"fc-path"},r.migrated_to)," ",t.createElement("span",{className:"fc-muted"},"#",r.number,", ",t.createElement(b,{at:r.at}))),Array.isArray(r.migration.operators)&&t.createElement(Ue,{operators:r.migration.operators})))):null}function Mn({page:e}){let n=Ve(e,"backfilled");return n.length?t.createElement(g,{title:"Backfills"},t.createElement(V,{caption:"Backfills",heads:["When","Range","Counts","Sinks","Run"]},n.map(r=>t.createElement("tr",{key:r.number},t.createElement("th",{scope:"row"},t.createElement(b,{at:r.at})),t.createElement("td",null,ce(r)),t.createElement("td",null,me(r)),t.createElement("td",null,Object.entries(r.sinks).map(([o,i])=>t.createElement("div",{key:o},o,": ",t.createElement("code",{className:"fc-path"},i)))),t.createElement("td",null,r.run?t.createElement(T,{run:r.run}):"–"))))):null}function jn({page:{running:e}}){return e?t.createElement(g,{title:"Script that runs",aside:t.createElement("span",{className:"fc-muted"},"version ",t.createElement(x,{id:e.sha256}))},t.createElement(M,{text:e.script,label:"Script that runs"}),t.createElement(Wn,{version:e})):null}function Wn({version:e}){let n=[...Object.entries(e.settings),...Object.entries(e.variables).map(([r,o])=>[`\${${r}}`,o])];return t.createElement(t.Fragment,null,n.length>0&&t.createElement("div",{className:"fc-beside"},t.createElement("h3",null,"Settings"),t.createElement(w,{facts:n.map(([r,o])=>[r,t.createElement("code",{key:r},o)])})),e.catalog&&t.createElement("details",null,t.createElement("summary",null,"Catalog"),t.createElement(M,{text:e.catalog,label:"Catalog"})),Object.entries(e.files).map(([r,o])=>t.createElement("details",{key:r},t.createElement("summary",null,r),t.createElement(M,{text:o,label:r}))))}var ze=50,Bn=30,Hn=300,Un=[["pending","wait for a decision"],["in_flight","in flight"],["interrupted","interrupted"],["failed","failed"],["unreadable","unreadable"]],Vn=e=>{let n=new URLSearchParams(e);return{show:n.get("show")??"",team:n.get("team")??"",q:n.get("q")??"",page:Math.max(1,Math.floor(Number(n.get("page")))||1)}};function $t(){let e=ae(),n=Vn(se().search),r=s=>{let{page:a,...d}={...n,page:1,...s};e(N({...d,page:a>1?a:void 0}),{replace:!0})},o=n.show.split(",").filter(Boolean),i=P(de({team:n.team,q:n.q,limit:ze,offset:(n.page-1)*ze},o),Bn);return t.createElement(R,{title:"Flink deployments"},t.createElement(I,{answer:i},s=>t.createElement(t.Fragment,null,t.createElement(zn,{list:s}),t.createElement(qn,{list:s}),s.counts.all===0?t.createElement(Gn,{list:s}):t.createElement(t.Fragment,null,t.createElement(Jn,{list:s,filters:n,kinds:o,go:r}),t.createElement("p",{className:"fc-muted",role:"status"},s.total===s.counts.all?S(s.total,"deployment"):`${s.total} of ${S(s.counts.all,"deployment")}`),s.total>0&&t.createElement(Qn,{list:s}),t.createElement(Rn,{total:s.total,page:n.page,go:r})))))}function zn({list:e}){let{pending:n,interrupted:r}=e.counts;return!n&&!r?null:t.createElement("p",{className:"fc-headline"},n>0&&t.createElement(c,{to:N({show:"pending"})},S(n,"waits","wait")," for a decision"),r>0&&t.createElement(c,{to:N({show:"interrupted"})},S(r,"redeploy is","redeploys are")," interrupted"))}function qn({list:e}){let n=[...e.problems,...e.ledgers.filter(r=>r.error).map(r=>`Ledger ${r.uri??r.id}: ${r.error}`)];return n.length?t.createElement("ul",{className:"fc-note fc-note-bad"},n.map(r=>t.createElement("li",{key:r},r))):null}function Gn({list:e}){return t.createElement("div",{className:"fc-note"},e.ledgers.length?t.createElement("p",null,"There are no deployments that you may see. One appears with the first run of its DAG, for everybody who may read that DAG."):t.createElement("p",null,"Airflow knows no ledger. Name one in a Flink connection (extra ",t.createElement("code",null,"ledger"),"), or in the setting"," ",t.createElement("code",null,"[flinkcompat] ledgers"),"."))}function Jn({list:e,filters:n,kinds:r,go:o}){return t.createElement("form",{className:"fc-bar",role:"search",onSubmit:i=>i.preventDefault()},t.createElement(Yn,{value:n.q,change:i=>o({q:i})}),e.teams.length>0&&t.createElement("select",{"aria-label":"Team",value:n.team,onChange:i=>o({team:i.currentTarget.value})},t.createElement("option",{value:""},"all teams"),[...new Set([...e.teams,...n.team?[n.team]:[]])].map(i=>t.createElement("option",{key:i},i))),t.createElement("div",{className:"fc-chips",role:"group","aria-label":"Show only"},Un.filter(([i])=>e.counts[i]>0||r.includes(i)).map(([i,s])=>{let a=r.includes(i),d=a?r.filter(l=>l!==i):[...r,i];return t.createElement("button",{key:i,type:"button",className:"fc-chip","aria-pressed":a,onClick:()=>o({show:d.join(",")})},s," ",t.createElement("b",null,e.counts[i]))})))}function Yn({value:e,change:n}){let[r,o]=v(e);return O(()=>o(e),[e]),O(()=>{if(r===e)return;let i=setTimeout(()=>n(r),Hn);return()=>clearTimeout(i)},[r]),t.createElement("input",{type:"search","aria-label":"Search by name, DAG, team, owner, author, commit or job",placeholder:"Search: name, DAG, team, author, commit, job",maxLength:200,value:r,onChange:i=>o(i.currentTarget.value)})}var ne=["Deployment","What runs","Proposed","Redeploy","Last savepoint"];function Qn({list:e}){let[n,r]=he(),o=e.ledgers.length>1,i=e.deployments.map(s=>({one:s,key:`${s.ledger}/${s.deployment}`,ledger:o?Zn(e,s):""}));return t.createElement("div",{ref:n},r?t.createElement("ul",{className:"fc-list"},i.map(({key:s,...a})=>t.createElement(Kn,{key:s,...a}))):t.createElement(V,{caption:"Deployments",heads:ne},i.map(({key:s,...a})=>t.createElement(Xn,{key:s,...a}))))}var Zn=(e,n)=>{let r=e.ledgers.find(o=>o.id===n.ledger);return r?.connections.join(", ")||r?.uri||""};function Et({one:e,ledger:n}){let r=e.owned_by!==e.team&&e.owned_by;return t.createElement("div",{className:"fc-stack"},t.createElement(c,{to:B(e.ledger,e.deployment)},e.deployment),t.createElement("span",{className:"fc-muted"},[e.team,r,n].filter(Boolean).join(" · ")))}function Ct({error:e}){return t.createElement(t.Fragment,null,t.createElement(y,{tone:"bad"},"unreadable")," ",e)}function Xn({one:e,ledger:n}){return t.createElement("tr",null,t.createElement("th",{scope:"row"},t.createElement(Et,{one:e,ledger:n})),e.error?t.createElement("td",{colSpan:ne.length-1},t.createElement(Ct,{error:e.error})):t.createElement(t.Fragment,null,t.createElement("td",null,t.createElement(Ft,{one:e})),t.createElement("td",null,t.createElement(q,{one:e})),t.createElement("td",null,t.createElement(G,{one:e})),t.createElement("td",null,e.savepoint?t.createElement(It,{of:e.savepoint}):t.createElement("span",{className:"fc-muted"},"–"))))}function Kn({one:e,ledger:n}){return t.createElement("li",{className:"fc-narrow"},t.createElement(Et,{one:e,ledger:n}),e.error?t.createElement("p",null,t.createElement(Ct,{error:e.error})):t.createElement(w,{facts:[[ne[1],t.createElement(Ft,{key:"runs",one:e})],[ne[2],(e.pending||e.checked)&&t.createElement(q,{one:e})],[ne[3],(e.unfinished||e.failed)&&t.createElement(G,{one:e})],[ne[4],e.savepoint&&t.createElement(It,{of:e.savepoint})]]}))}function Ft({one:e}){if(!e.entry)return t.createElement("span",{className:"fc-muted"},"nothing yet");let{at:n,approved_by:r,job_id:o,start_mode:i}=e.entry;return t.createElement("div",{className:"fc-stack"},t.createElement("span",null,pe(e.entry),o&&t.createElement(t.Fragment,null,", job"," ",t.createElement(ge,{href:e.job_url},t.createElement(x,{id:o})))),t.createElement("span",{className:"fc-muted"},t.createElement(U,{since:n}),i&&`, ${K(i)}`,r&&`, approved by ${r}`))}function It({of:e}){return t.createElement("div",{className:"fc-stack"},t.createElement("span",{title:e.path},t.createElement(b,{at:e.taken_at})),e.bytes!==null&&t.createElement("span",{className:"fc-muted"},oe(e.bytes)))}function Rn({total:e,page:n,go:r}){let o=Math.max(1,Math.ceil(e/ze));return o===1&&n===1?null:t.createElement("nav",{className:"fc-paging","aria-label":"Pages of the list"},t.createElement("button",{type:"button",className:"fc-button",disabled:n<=1,onClick:()=>r({page:n-1})},"Previous"),t.createElement("span",null,"Page ",n," of ",o),t.createElement("button",{type:"button",className:"fc-button",disabled:n>=o,onClick:()=>r({page:n+1})},"Next"))}var er=5,tr=60;function Mt(){let e=P(de({limit:er},["pending","interrupted","failed"]),tr);return t.createElement("section",{className:"fc-root fc-card","aria-label":"Flink deployments"},t.createElement("div",{className:"fc-section-head"},t.createElement("h2",null,t.createElement(c,{to:N()},"Flink deployments")),e.data&&t.createElement("span",{className:"fc-muted"},S(e.data.counts.all,"deployment"))),t.createElement(I,{answer:e},n=>n.deployments.length===0?t.createElement("p",{className:"fc-muted"},"Nothing waits for a decision, nothing is interrupted."):t.createElement(t.Fragment,null,t.createElement("ul",{className:"fc-list"},n.deployments.map(r=>t.createElement("li",{key:`${r.ledger}/${r.deployment}`},t.createElement(c,{to:B(r.ledger,r.deployment)},r.deployment),r.pending&&t.createElement(q,{one:r}),t.createElement(G,{one:r})))),n.total>n.deployments.length&&t.createElement(c,{to:N({show:"pending,interrupted,failed"})},"All ",n.total," that need somebody"))))}var jt=`/* Airflow's UI sets the variables of Chakra UI, and a class of the root element for the theme: so both themes follow. */
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
.fc-facts {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 28px;
  margin: 4px 0;
}
.fc-facts > div {
  max-width: 100%;
  min-width: 0;
}
.fc-facts dt {
  color: var(--fc-muted);
  font-size: 12px;
}
.fc-facts dd {
  margin: 0;
  overflow-wrap: anywhere;
  white-space: pre-line;
}
.fc-note-ask {
  background: var(--fc-busy-bg);
  color: var(--fc-busy);
}
.fc-note-ask a,
.fc-note-ask .fc-muted {
  color: inherit;
}
.fc-ask {
  align-items: center;
  display: flex;
  flex-wrap: wrap;
  gap: 6px 12px;
}
.fc-root a.fc-primary {
  align-self: auto;
  background: var(--fc-busy);
  border-color: var(--fc-busy);
  color: var(--fc-busy-bg);
  font-weight: 600;
  text-decoration: none;
}
.fc-code {
  background: var(--fc-subtle);
  border: 1px solid var(--fc-border);
  border-radius: 6px;
  max-height: 70vh;
  overflow: auto;
  padding: 10px 12px;
  white-space: pre;
}
.fc-root p {
  overflow-wrap: anywhere;
}
.fc-path {
  overflow-wrap: anywhere;
}
.fc-beside {
  margin-top: 12px;
}
.fc-root del {
  background: var(--fc-del);
  color: inherit;
  text-decoration: none;
}
.fc-root ins {
  background: var(--fc-add);
  color: inherit;
  text-decoration: none;
}
.fc-frame {
  border: 1px solid var(--fc-border);
  border-radius: 6px;
}
.fc-diff {
  border-collapse: collapse;
  table-layout: fixed;
  width: 100%;
}
.fc-diff thead th {
  border-bottom: 1px solid var(--fc-border);
  color: var(--fc-muted);
  font-size: 12px;
  font-weight: 600;
  padding: 4px 8px;
  text-align: start;
}
.fc-numbers {
  width: 40px;
}
.fc-number,
.fc-line {
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  font-size: 12.5px;
  line-height: 1.5;
}
.fc-number {
  color: var(--fc-muted);
  padding: 0 6px;
  text-align: end;
  user-select: none;
  vertical-align: top;
}
.fc-line {
  overflow-wrap: anywhere;
  padding: 0 8px;
  vertical-align: top;
  white-space: pre-wrap;
}
.fc-before {
  background: var(--fc-del-bg);
}
.fc-after {
  background: var(--fc-add-bg);
}
.fc-before.fc-number,
.fc-after.fc-number {
  color: var(--fc-fg);
}
.fc-void {
  background: var(--fc-subtle);
}
.fc-clause {
  text-decoration: underline 2px;
  text-decoration-skip-ink: none;
  text-underline-offset: 3px;
}
.fc-fold td {
  background: var(--fc-subtle);
  border-block: 1px solid var(--fc-border);
  padding: 2px 8px;
}
.fc-fold button {
  color: var(--fc-link);
  cursor: pointer;
  min-height: 24px;
}
.fc-all {
  margin: 8px;
}
.fc-remark td {
  background: var(--fc-raised);
  border-block: 1px solid var(--fc-border);
  padding: 6px 10px;
}
.fc-remark-text {
  align-items: baseline;
  display: flex;
  flex-wrap: wrap;
  gap: 4px 8px;
}
.fc-remark-text > span:last-child {
  flex: 1 1 240px;
  overflow-wrap: anywhere;
}
.fc-verdict {
  margin-bottom: 12px;
}
.fc-findings,
.fc-steps,
.fc-bullets {
  display: flex;
  flex-direction: column;
  gap: 12px;
}
.fc-steps,
.fc-bullets {
  gap: 8px;
  list-style: revert;
  padding-inline-start: 22px;
}
.fc-findings {
  list-style: none;
}
.fc-findings > li {
  border-inline-start: 3px solid var(--fc-border);
  padding-inline-start: 12px;
}
.fc-timeline {
  display: flex;
  flex-direction: column;
  gap: 14px;
  list-style: none;
}
.fc-timeline > li {
  border-inline-start: 3px solid var(--fc-border);
  padding-inline-start: 12px;
}
.fc-event {
  align-items: baseline;
  display: flex;
  flex-wrap: wrap;
  gap: 4px 10px;
}
.fc-branches {
  list-style: none;
  padding-inline-start: 16px;
}
.fc-root summary {
  cursor: pointer;
  min-height: 24px;
}
.fc-trail {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 16px;
  list-style: none;
  padding: 4px 0 0 16px;
}
.fc-root :is(td, th, dd, dt, li, p, span, a, code, h1) {
  unicode-bidi: isolate;
}
.fc-unseen {
  background: var(--fc-bad-bg);
  border-radius: 3px;
  color: var(--fc-bad);
  font-size: 11px;
  padding: 0 3px;
}
.fc-table code {
  overflow-wrap: anywhere;
}
.fc-table th[scope="rowgroup"] {
  background: var(--fc-subtle);
  max-width: none;
}
.fc-plain-text {
  font-weight: 400;
}
.fc-list > li.fc-narrow {
  flex-direction: column;
  padding: 10px 0;
}
`;function rr(){let{ledger:e,deployment:n,change:r}=Xe(se().search);if(!e||!n)return t.createElement($t,null);let o=`${e}/${n}/${r??""}`;return r?t.createElement(_t,{key:o,ledger:e,deployment:n,number:r}):t.createElement(Ot,{key:o,ledger:e,deployment:n})}function or(){let e=new CSSStyleSheet;e.replaceSync(jt),document.adoptedStyleSheets=[...document.adoptedStyleSheets,e],Object.assign(globalThis,{"Flink deployments":rr,"Flink change":Dt,"Flink overview":Mt})}or();})();
