/*! airflow-flinkcompat, Apache-2.0; jsdiff, BSD-3-Clause: see licenses.txt */
"use strict";(()=>{var K=globalThis,t=K.React,{useEffect:T,useId:ar,useMemo:Ze,useRef:de,useState:v}=K.React,Xe=new URL(document.baseURI).pathname.replace(/[^/]*$/,""),X=e=>Xe+e.replace(/^\//,""),Ht=()=>K.ReactRouterDOM.useLocation(),Ut=()=>K.ReactRouterDOM.useNavigate(),Vt=()=>{let[,e]=v(0);return T(()=>{let n=()=>e(r=>r+1);return window.addEventListener("popstate",n),()=>window.removeEventListener("popstate",n)},[]),{pathname:window.location.pathname.slice(Xe.length-1),search:window.location.search}},zt=()=>(e,n)=>{n?.replace?(window.history.replaceState(null,"",X(e)),window.dispatchEvent(new PopStateEvent("popstate"))):window.location.assign(X(e))},fe=K.ReactRouterDOM?Ht:Vt,pe=K.ReactRouterDOM?Ut:zt;var qt={401:"You are not signed in any more. Reload the page to sign in again.",403:"You may not see this. Access is given with the right to read the DAG that deploys the job.",404:"There is no such thing here. It may have been renamed, or its ledger is not one that Airflow knows.",503:"The ledger cannot be read at the moment."},Ke=(e,n)=>({title:qt[e]??`Airflow could not answer (status ${e}). Its API server's log says why.`,detail:n}),Gt=e=>{try{let n=JSON.parse(e).detail;return typeof n=="string"?n:""}catch{return""}};async function Jt(e,n){let r;try{r=await fetch(X(e),{signal:n,headers:{Accept:"application/json"}})}catch(i){throw n.aborted?i:{title:"Airflow cannot be reached. Are you offline?",detail:""}}let o=await r.text();if(!r.ok)throw Ke(r.status,Gt(o));try{return JSON.parse(o)}catch{throw Ke(r.status,"The answer is no JSON.")}}function _(e,n){let[r,o]=v({loading:!0}),[i,s]=v(0),a=()=>s(l=>l+1);return T(()=>{if(e===void 0)return;let l=new AbortController;return o(d=>({...d,loading:!0})),Jt(e,l.signal).then(d=>o({path:e,data:d,loading:!1}),d=>l.signal.aborted||o({path:e,failure:d,loading:!1})),()=>l.abort()},[e,i]),T(()=>{if(!n||e===void 0)return;let l=setInterval(()=>document.hidden||a(),n*1e3);return()=>clearInterval(l)},[e,n]),{data:r.data,failure:r.failure,loading:r.loading,again:a}}var Te="/plugin/flink",Re=e=>{let n=new URLSearchParams(e),[r,o,i]=[n.get("ledger"),n.get("deployment"),Number(n.get("change"))];return!r||!o?{}:i>0?{ledger:r,deployment:o,change:i}:{ledger:r,deployment:o}},R=(e,n)=>{let r=new URLSearchParams;for(let[o,i]of Object.entries(n))i!==void 0&&i!==""&&r.set(o,`${i}`);return r.size?`${e}?${r}`:e},E=encodeURIComponent,S=(e={})=>R(Te,e),H=(e,n)=>R(Te,{ledger:e,deployment:n}),M=(e,n,r)=>R(Te,{ledger:e,deployment:n,change:r}),_e=e=>`/dags/${E(e)}`,ue=e=>`${_e(e.dag_id)}/runs/${E(e.run_id)}`,Le=(e,n)=>`${ue(e)}/tasks/${E(n)}`,et=(e,n)=>`${n?Le(e,n):ue(e)}/required_actions`,De="/flinkcompat/api/v1",ce=(e,n)=>{let r=R(`${De}/deployments`,e),o=n.map(i=>`attention=${E(i)}`).join("&");return o?`${r}${r.includes("?")?"&":"?"}${o}`:r},Ae=(e,n)=>`${De}/deployments/${E(e)}/${E(n)}`,tt=(e,n,r)=>`${Ae(e,n)}/changes/${r}`,nt=(e,n,r)=>R(`${De}/runs/${E(e)}/${E(n)}`,{task_id:r}),rt=e=>R(`/api/v2/dags/${E(e.dag_id)}/dagRuns/${E(e.run_id)}/hitlDetails`,{response_received:"false"});var Oe=e=>e<1?`${Math.max(0,Math.round(e*1e3))} ms`:e<60?`${Number(e.toFixed(e<10?1:0))} s`:e<3600?`${Math.floor(e/60)} min ${Math.round(e%60)} s`:e<86400?`${Math.floor(e/3600)} h ${Math.floor(e%3600/60)} min`:`${Math.floor(e/86400)} d ${Math.floor(e%86400/3600)} h`,$e=(e,n)=>{let r=(n-Date.parse(e))/1e3;return Number.isNaN(r)?e:r<60?"a moment":r<3600?`${Math.floor(r/60)} min`:r<172800?`${Math.floor(r/3600)} h`:`${Math.floor(r/86400)} d`},Yt=new Intl.DateTimeFormat(void 0,{dateStyle:"medium",timeStyle:"medium"}),me=e=>{let n=new Date(e);return Number.isNaN(n.getTime())?e:Yt.format(n)},ot=["bytes","kB","MB","GB","TB","PB"],se=e=>{let n=e<1e3?0:Math.min(ot.length-1,Math.floor(Math.log10(e)/3));return`${Number((e/1e3**n).toPrecision(3))} ${ot[n]}`},P=(e,n,r=`${n}s`)=>`${e} ${e===1?n:r}`,Ee=e=>/^[0-9a-f]{20,}$/.test(e)?e.slice(0,8):e,Qt={flink:"Flink",vvr:"VVR"},ge=e=>[Qt[e.engine]??e.engine,e.engine_version].filter(Boolean).join(" "),Zt={savepoint:"from the savepoint",checkpoint:"from a checkpoint",migrated:"from the migrated savepoint",stateless:"without state"},ee=e=>Zt[e]??e,Xt={adopted:"Adopted",approved:"Approved",backfilled:"Backfilled",checked:"Checked",deployed:"Deployed",deploying:"Redeploy begun",disposed:"Savepoint deleted",failed:"Failed",interrupted:"Interrupted",migrated:"Savepoint migrated",migrating:"Migrating the savepoint",planned:"Plan only",rehearsed:"Rehearsed",rejected:"Rejected","rolled-back":"Rolled back","rolling-back":"Rolling back",started:"Job started",starting:"Starting the job",stopped:"Job stopped",stopping:"Stopping the job",unchanged:"Unchanged"},U=e=>Xt[e]??e,Kt={compatible:"The state fits.",partial:"A part of the state fits, the rest begins anew.",unknown:"It cannot be told whether the state fits.",incompatible:"The state does not fit."},he=e=>Kt[e]??"",be=e=>`${e.range_from??"the beginning"} to ${e.range_to??"the end"}`,ye=e=>Object.entries(e.counts).map(([n,r])=>`${r.toLocaleString()} ${n}`).join(", ");function c({to:e,children:n,className:r}){let o=pe();return t.createElement("a",{className:r,href:X(e),onClick:i=>{i.button||i.metaKey||i.ctrlKey||i.shiftKey||i.altKey||(i.preventDefault(),o(e))}},n)}function xe({href:e,children:n}){return!e||!/^https?:\/\//i.test(e)?t.createElement(t.Fragment,null,n):t.createElement("a",{href:e,rel:"noreferrer",target:"_blank"},n,t.createElement("span",{"aria-hidden":"true"}," ↗"),t.createElement("span",{className:"fc-hidden"}," (opens in a new tab)"))}function L({run:e,task:n=!1}){return t.createElement(c,{to:n&&e.task_id?Le(e,e.task_id):ue(e)},e.dag_id," / ",e.run_id,n&&e.task_id?` / ${e.task_id}`:"")}var it=720;function we(){let e=de(null),[n,r]=v(()=>window.innerWidth<it);return T(()=>{let o=new ResizeObserver(([i])=>i&&r(i.contentRect.width<it));return e.current&&o.observe(e.current),()=>o.disconnect()},[]),[e,n]}function st(){let[e,n]=v(Date.now);return T(()=>{let r=setInterval(()=>n(Date.now()),6e4);return()=>clearInterval(r)},[]),e}function y({at:e}){return t.createElement("time",{dateTime:e,title:me(e)},$e(e,st())," ago")}function V({since:e}){return t.createElement("time",{dateTime:e,title:`since ${me(e)}`},"for ",$e(e,st()))}function at({text:e}){return t.createElement(t.Fragment,null,e.split(/`([^`\n]+)`/).map((n,r)=>r%2?t.createElement("code",{key:r},n):n))}function W({at:e}){return t.createElement("time",{dateTime:e},me(e))}function x({tone:e,children:n,title:r}){return t.createElement("span",{className:`fc-badge fc-${e}`,title:r},n)}var Rt={compatible:"good",partial:"fair",unknown:"doubt",incompatible:"bad"};function D({outcome:e}){return t.createElement(x,{tone:Rt[e]??"plain",title:he(e)},e)}function w({id:e}){return t.createElement("code",{title:Ee(e)===e?void 0:e,className:"fc-id"},Ee(e))}function en({failure:e,again:n}){return t.createElement("div",{className:"fc-note fc-note-bad",role:"alert"},t.createElement("p",null,e.title),e.detail&&t.createElement("p",{className:"fc-muted"},e.detail),t.createElement("button",{type:"button",className:"fc-button",onClick:n},"Try again"))}function I({answer:e,children:n}){return e.failure?t.createElement(en,{failure:e.failure,again:e.again}):e.data===void 0?t.createElement("p",{className:"fc-muted",role:"status"},"Reading the ledger …"):t.createElement(t.Fragment,null,n(e.data))}function h({title:e,children:n,aside:r}){return t.createElement("section",{className:"fc-section"},t.createElement("div",{className:"fc-section-head"},t.createElement("h2",null,e),r),n)}function k({facts:e}){return t.createElement("dl",{className:"fc-facts"},e.filter(([,n])=>n!=null&&n!==""&&n!==!1).map(([n,r])=>t.createElement("div",{key:n},t.createElement("dt",null,n),t.createElement("dd",null,typeof r=="string"?t.createElement(g,{text:r}):r))))}function z({caption:e,heads:n,bodies:r,children:o}){return t.createElement("div",{className:"fc-scroll",role:"region","aria-label":e,tabIndex:0},t.createElement("table",{className:"fc-table"},t.createElement("caption",{className:"fc-hidden"},e),t.createElement("thead",null,t.createElement("tr",null,n.map(i=>t.createElement("th",{key:i,scope:"col"},i)))),r?o:t.createElement("tbody",null,o)))}var tn=/([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])/;function g({text:e}){return t.createElement(t.Fragment,null,e.split(tn).map((n,r)=>r%2?t.createElement("span",{key:r,className:"fc-unseen"},"U+",n.codePointAt(0).toString(16).toUpperCase().padStart(4,"0")):n))}function q({text:e}){return e?t.createElement("p",{className:"fc-muted"},t.createElement(g,{text:e})):null}function j({text:e,label:n}){return t.createElement("pre",{className:"fc-code",tabIndex:0,role:"region","aria-label":n},t.createElement(g,{text:e}))}function te({title:e,above:n,children:r}){return t.createElement("div",{className:"fc-root fc-page"},n&&t.createElement("nav",{className:"fc-above","aria-label":"Pages above this one"},n),t.createElement("h1",null,e),r)}var lt={waiting:"This change waits for a decision.",approved:"Approved",rejected:"Rejected","not asked":"Nobody was asked: the policy decided.","not decided":"Nobody decided: another version came, or this one failed by itself."};function dt({decision:e}){return e.state==="waiting"?t.createElement("div",{className:"fc-note fc-note-ask"},t.createElement("p",null,t.createElement("b",null,lt.waiting)),e.run?t.createElement(nn,{run:e.run}):t.createElement("p",null,"It is asked by a run that you may not see, or by another Airflow.")):t.createElement("div",{className:"fc-note"},t.createElement("p",null,t.createElement("b",null,lt[e.state]),e.by&&t.createElement(g,{text:` by ${e.by}`}),e.at&&t.createElement(t.Fragment,null,", ",t.createElement(W,{at:e.at}))),e.reason&&t.createElement("p",null,"Reason: ",t.createElement(g,{text:e.reason})),t.createElement(q,{text:e.message}),e.run&&t.createElement("p",null,"Run: ",t.createElement(L,{run:e.run})))}function nn({run:e}){let n=_(rt(e),30).data?.hitl_details??[];return n.length?t.createElement(t.Fragment,null,n.map(({task_instance:{task_id:r,map_index:o},options:i})=>t.createElement("p",{key:`${r}/${o}`,className:"fc-ask"},t.createElement(c,{className:"fc-button fc-primary",to:et(e,r)},"Decide in Airflow"),t.createElement("span",{className:"fc-muted"},i.join(" · "))))):t.createElement("p",null,"The question is asked in ",t.createElement(L,{run:e}),".")}var Ce=e=>e&&Array.isArray(e.findings)&&e.old&&e.new?e:null;var B=class{diff(n,r,o={}){let i;typeof o=="function"?(i=o,o={}):"callback"in o&&(i=o.callback);let s=this.castInput(n,o),a=this.castInput(r,o),l=this.removeEmpty(this.tokenize(s,o)),d=this.removeEmpty(this.tokenize(a,o));return this.diffWithOptionsObj(l,d,o,i)}diffWithOptionsObj(n,r,o,i){var s;let a=p=>{if(p=this.postProcess(p,o),i){setTimeout(function(){i(p)},0);return}else return p},l=r.length,d=n.length,f=1,u=l+d;o.maxEditLength!=null&&(u=Math.min(u,o.maxEditLength));let C=(s=o.timeout)!==null&&s!==void 0?s:1/0,A=Date.now()+C,N=[{oldPos:-1,lastComponent:void 0}],O=this.extractCommon(N[0],r,n,0,o);if(N[0].oldPos+1>=d&&O+1>=l)return a(this.buildValues(N[0].lastComponent,r,n));let ie=-1/0,Q=1/0,m=()=>{for(let p=Math.max(ie,-f);p<=Math.min(Q,f);p+=2){let b,F=N[p-1],$=N[p+1];F&&(N[p-1]=void 0);let Z=!1;if($){let Qe=$.oldPos-p;Z=$&&0<=Qe&&Qe<l}let Ye=F&&F.oldPos+1<d;if(!Z&&!Ye){N[p]=void 0;continue}if(!Ye||Z&&F.oldPos<$.oldPos?b=this.addToPath($,!0,!1,0,o):b=this.addToPath(F,!1,!0,1,o),O=this.extractCommon(b,r,n,p,o),b.oldPos+1>=d&&O+1>=l)return a(this.buildValues(b.lastComponent,r,n))||!0;N[p]=b,b.oldPos+1>=d&&(Q=Math.min(Q,p-1)),O+1>=l&&(ie=Math.max(ie,p+1))}f++};if(i)(function p(){setTimeout(function(){if(f>u||Date.now()>A)return i(void 0);m()||p()},0)})();else for(;f<=u&&Date.now()<=A;){let p=m();if(p)return p}}addToPath(n,r,o,i,s){let a=n.lastComponent;return a&&!s.oneChangePerToken&&a.added===r&&a.removed===o?{oldPos:n.oldPos+i,lastComponent:{count:a.count+1,added:r,removed:o,previousComponent:a.previousComponent}}:{oldPos:n.oldPos+i,lastComponent:{count:1,added:r,removed:o,previousComponent:a}}}extractCommon(n,r,o,i,s){let a=r.length,l=o.length,d=n.oldPos,f=d-i,u=0;for(;f+1<a&&d+1<l&&this.equals(o[d+1],r[f+1],s);)f++,d++,u++,s.oneChangePerToken&&(n.lastComponent={count:1,previousComponent:n.lastComponent,added:!1,removed:!1});return u&&!s.oneChangePerToken&&(n.lastComponent={count:u,previousComponent:n.lastComponent,added:!1,removed:!1}),n.oldPos=d,f}equals(n,r,o){return o.comparator?o.comparator(n,r):n===r||!!o.ignoreCase&&n.toLowerCase()===r.toLowerCase()}removeEmpty(n){let r=[];for(let o=0;o<n.length;o++)n[o]&&r.push(n[o]);return r}castInput(n,r){return n}tokenize(n,r){return Array.from(n)}join(n){return n.join("")}postProcess(n,r){return n}get useLongestToken(){return!1}buildValues(n,r,o){let i=[],s;for(;n;)i.push(n),s=n.previousComponent,delete n.previousComponent,n=s;i.reverse();let a=i.length,l=0,d=0,f=0;for(;l<a;l++){let u=i[l];if(u.removed)u.value=this.join(o.slice(f,f+u.count)),f+=u.count;else{if(!u.added&&this.useLongestToken){let C=r.slice(d,d+u.count);C=C.map(function(A,N){let O=o[f+N];return O.length>A.length?O:A}),u.value=this.join(C)}else u.value=this.join(r.slice(d,d+u.count));d+=u.count,u.added||(f+=u.count)}}return i}};function Fe(e,n){let r;for(r=0;r<e.length&&r<n.length;r++)if(e[r]!=n[r])return e.slice(0,r);return e.slice(0,r)}function Me(e,n){let r;if(!e||!n||e[e.length-1]!=n[n.length-1])return"";for(r=0;r<e.length&&r<n.length;r++)if(e[e.length-(r+1)]!=n[n.length-(r+1)])return e.slice(-r);return e.slice(-r)}function ve(e,n,r){if(e.slice(0,n.length)!=n)throw Error(`string ${JSON.stringify(e)} doesn't start with prefix ${JSON.stringify(n)}; this is a bug`);return r+e.slice(n.length)}function ke(e,n,r){if(!n)return e+r;if(e.slice(-n.length)!=n)throw Error(`string ${JSON.stringify(e)} doesn't end with suffix ${JSON.stringify(n)}; this is a bug`);return e.slice(0,-n.length)+r}function ne(e,n){return ve(e,n,"")}function ae(e,n){return ke(e,n,"")}function Ie(e,n){return n.slice(0,rn(e,n))}function rn(e,n){let r=0;e.length>n.length&&(r=e.length-n.length);let o=n.length;e.length<n.length&&(o=e.length);let i=Array(o),s=0;i[0]=0;for(let a=1;a<o;a++){for(n[a]==n[s]?i[a]=i[s]:i[a]=s;s>0&&n[a]!=n[s];)s=i[s];n[a]==n[s]&&s++}s=0;for(let a=r;a<e.length;a++){for(;s>0&&e[a]!=n[s];)s=i[s];e[a]==n[s]&&s++}return s}function je(e,n){let r=[];for(let o of Array.from(n.segment(e))){let i=o.segment;r.length&&/\s/.test(r[r.length-1])&&/\s/.test(i)?r[r.length-1]+=i:r.push(i)}return r}function Ne(e,n){if(n)return re(e,n)[1];let r;for(r=e.length-1;r>=0&&e[r].match(/\s/);r--);return e.substring(r+1)}function G(e,n){if(n)return re(e,n)[0];let r=e.match(/^\s*/);return r?r[0]:""}function re(e,n){if(!n)return[G(e),Ne(e)];if(n.resolvedOptions().granularity!="word")throw new Error('The segmenter passed must have a granularity of "word"');let r=je(e,n),o=r[0],i=r[r.length-1],s=/\s/.test(o)?o:"",a=/\s/.test(i)?i:"";return[s,a]}var Se="a-zA-Z0-9_\\u{AD}\\u{C0}-\\u{D6}\\u{D8}-\\u{F6}\\u{F8}-\\u{2C6}\\u{2C8}-\\u{2D7}\\u{2DE}-\\u{2FF}\\u{1E00}-\\u{1EFF}",on=new RegExp(`[${Se}]+|\\s+|[^${Se}]`,"ug"),We=class extends B{equals(n,r,o){return o.ignoreCase&&(n=n.toLowerCase(),r=r.toLowerCase()),n.trim()===r.trim()}tokenize(n,r={}){let o;if(r.intlSegmenter){let a=r.intlSegmenter;if(a.resolvedOptions().granularity!="word")throw new Error('The segmenter passed must have a granularity of "word"');o=je(n,a)}else o=n.match(on)||[];let i=[],s=null;return o.forEach(a=>{/\s/.test(a)?s==null?i.push(a):i.push(i.pop()+a):s!=null&&/\s/.test(s)?i[i.length-1]==s?i.push(i.pop()+a):i.push(s+a):i.push(a),s=a}),i}join(n){return n.map((r,o)=>o==0?r:r.replace(/^\s+/,"")).join("")}postProcess(n,r){if(!n||r.oneChangePerToken)return n;let o=null,i=null,s=null;return n.forEach(a=>{a.added?i=a:a.removed?s=a:((i||s)&&ft(o,s,i,a,r.intlSegmenter),o=a,i=null,s=null)}),(i||s)&&ft(o,s,i,null,r.intlSegmenter),n}},sn=new We;function ft(e,n,r,o,i){if(n&&r){let[s,a]=re(n.value,i),[l,d]=re(r.value,i);if(e){let f=Fe(s,l);e.value=ke(e.value,l,f),n.value=ne(n.value,f),r.value=ne(r.value,f)}if(o){let f=Me(a,d);o.value=ve(o.value,d,f),n.value=ae(n.value,f),r.value=ae(r.value,f)}}else if(r){if(e){let s=G(r.value,i);r.value=r.value.substring(s.length)}if(o){let s=G(o.value,i);o.value=o.value.substring(s.length)}}else if(e&&o){let s=G(o.value,i),[a,l]=re(n.value,i),d=Fe(s,a);n.value=ne(n.value,d);let f=Me(ne(s,d),l);n.value=ae(n.value,f),o.value=ve(o.value,s,f),e.value=ke(e.value,s,s.slice(0,s.length-f.length))}else if(o){let s=G(o.value,i),a=Ne(n.value,i),l=Ie(a,s);n.value=ae(n.value,l)}else if(e){let s=Ne(e.value,i),a=G(n.value,i),l=Ie(s,a);n.value=ne(n.value,l)}}var Be=class extends B{tokenize(n){let r=new RegExp(`(\\r?\\n)|[${Se}]+|[^\\S\\n\\r]+|[^${Se}]`,"ug");return n.match(r)||[]}},pt=new Be;function He(e,n,r){return pt.diff(e,n,r)}var Ue=class extends B{constructor(){super(...arguments),this.tokenize=an}equals(n,r,o){return o.ignoreWhitespace?((!o.newlineIsToken||!n.includes(`
`))&&(n=n.trim()),(!o.newlineIsToken||!r.includes(`
`))&&(r=r.trim())):o.ignoreNewlineAtEof&&!o.newlineIsToken&&(n.endsWith(`
`)&&(n=n.slice(0,-1)),r.endsWith(`
`)&&(r=r.slice(0,-1))),super.equals(n,r,o)}},ut=new Ue;function Ve(e,n,r){return ut.diff(e,n,r)}function an(e,n){n.stripTrailingCr&&(e=e.replace(/\r\n/g,`
`));let r=[],o=e.split(/(\n|\r\n)/);o[o.length-1]||o.pop();for(let i=0;i<o.length;i++){let s=o[i];i%2&&!n.newlineIsToken?r[r.length-1]+=s:r.push(s)}return r}var ln=e=>{let n=e.split(`
`);return n.at(-1)===""&&n.pop(),n},dn=.4,ct=2e3;function fn(e,n){if(e.length>ct||n.length>ct)return[[],[]];let r=[],o=[],[i,s,a]=[0,0,0];for(let{value:d,added:f,removed:u}of He(e,n))u?r.push({from:i,to:i+=d.length}):f?o.push({from:s,to:s+=d.length}):(i+=d.length,s+=d.length,a+=d.trim().length);let l=Math.max(e.trim().length,n.trim().length);return a>=l*dn?[r,o]:[[],[]]}function mt(e,n){let r=[],[o,i]=[0,0],s=[],a=l=>{for(let d=0;d<Math.max(s.length,l.length);d++){let[f,u]=[s[d],l[d]],[C,A]=f!==void 0&&u!==void 0?fn(f,u):[[],[]];r.push({before:f===void 0?null:{number:++o,text:f,changed:C},after:u===void 0?null:{number:++i,text:u,changed:A},same:!1})}s=[]};for(let l of Ve(e,n)){let d=ln(l.value);if(l.removed)a([]),s=d;else if(l.added)a(d);else{a([]);for(let f of d)r.push({before:{number:++o,text:f,changed:[]},after:{number:++i,text:f,changed:[]},same:!0})}}return a([]),r}function gt(e,n,r){let o=a=>Math.max(0,Math.min(e.length,a)),i=new Set([0,e.length]);for(let{from:a,to:l}of[...n,...r])i.add(o(a)),i.add(o(l));let s=[...i].sort((a,l)=>a-l);return s.slice(0,-1).map((a,l)=>{let d=s[l+1],f=u=>u.from<=a&&d<=u.to;return{text:e.slice(a,d),changed:n.some(f),marks:r.filter(f).map(({mark:u})=>u)}})}function ht(e,n,r=3,o=4){let i=e.map(()=>!1);e.forEach((a,l)=>{if(!(a.same&&!n(a)))for(let d=l-r;d<=l+r;d++)d in i&&(i[d]=!0)});let s=[];return e.forEach((a,l)=>{let d=s.at(-1);d&&d.folded===!i[l]?d.rows.push(a):s.push({rows:[a],folded:!i[l]})}),s.map(a=>a.rows.length<o?{...a,folded:!1}:a)}function pn(e,n,r){return!e||e.source!==n||r.number<e.line||r.number>e.end_line?null:{from:r.number===e.line?e.column-1:0,to:r.number===e.end_line?e.end_column:r.text.length}}function un(e,n){return e.after_span?.source===n.new.source?["after",e.after_span.end_line]:e.before_span?.source===n.old.source?["before",e.before_span.end_line]:null}var Pe={before:"Runs now",after:"Proposed"};function bt({old:e,new:n,report:r}){let[o,i]=we(),[s,a]=v(!1),[l,d]=v([]),f=Ze(()=>mt(e.script,n.script),[e.script,n.script]),u=(r?.findings??[]).map((m,p)=>({finding:m,mark:p+1})),C=u.map(m=>({...m,place:r&&un(m.finding,r)})),A=m=>C.filter(({place:p})=>p&&m[p[0]]?.number===p[1]).map(({finding:p,mark:b})=>({finding:p,mark:b})),N=ht(f,m=>A(m).length>0),O=(m,p)=>u.flatMap(({finding:b,mark:F})=>{let $=r&&!b.overruled_by&&pn(b[`${p}_span`],p==="before"?r.old.source:r.new.source,m);return $?[{...$,mark:F}]:[]}),ie=N.some((m,p)=>m.folded&&!l.includes(p)),Q=i?3:4;return t.createElement("div",{ref:o,className:"fc-scroll fc-frame",role:"region","aria-label":"Scripts compared",tabIndex:0},t.createElement("table",{className:`fc-diff ${i?"fc-unified":"fc-split"}`},t.createElement("caption",{className:"fc-hidden"},"The script that runs now and the proposed one"),t.createElement("colgroup",null,(i?["fc-numbers","fc-numbers",""]:["fc-numbers","","fc-numbers",""]).map((m,p)=>t.createElement("col",{key:p,className:m}))),t.createElement("thead",null,t.createElement("tr",null,i?t.createElement(t.Fragment,null,t.createElement("th",{scope:"col",colSpan:2},"Lines"),t.createElement("th",{scope:"col"},Pe.before," (−) and ",Pe.after.toLowerCase()," (+)")):t.createElement(t.Fragment,null,t.createElement("th",{scope:"colgroup",colSpan:2},Pe.before),t.createElement("th",{scope:"colgroup",colSpan:2},Pe.after)))),N.map((m,p)=>t.createElement("tbody",{key:p},m.folded&&!s&&!l.includes(p)?t.createElement("tr",{className:"fc-fold"},t.createElement("td",{colSpan:Q},t.createElement("button",{type:"button",onClick:()=>d([...l,p])},"Show ",P(m.rows.length,"unchanged line")))):m.rows.map((b,F)=>t.createElement(t.Fragment,{key:F},i?t.createElement(hn,{row:b,marksOf:O}):t.createElement(gn,{row:b,marksOf:O}),A(b).map(({finding:$,mark:Z})=>t.createElement("tr",{key:Z,className:"fc-remark"},t.createElement("td",{colSpan:Q},t.createElement(cn,{finding:$,mark:Z}))))))))),ie&&!s&&t.createElement("button",{type:"button",className:"fc-button fc-all",onClick:()=>a(!0)},"Show all lines"))}function cn({finding:e,mark:n}){return t.createElement("div",{className:e.overruled_by?"fc-remark-text fc-muted":"fc-remark-text"},t.createElement("a",{href:`#finding-${n}`,onClick:r=>mn(r,n),"aria-label":`Finding ${n}`},n),!e.overruled_by&&t.createElement(D,{outcome:e.outcome}),t.createElement("span",null,t.createElement("b",null,e.title??e.rule,".")," ",t.createElement(g,{text:e.message})))}function mn(e,n){e.preventDefault();let r=document.getElementById(`finding-${n}`);r?.scrollIntoView({block:"center"}),r?.focus({preventScroll:!0})}function gn({row:e,marksOf:n}){return t.createElement("tr",null,["before","after"].map(r=>{let o=e[r],i=e.same?"":o?`fc-${r}`:"fc-void";return t.createElement(t.Fragment,{key:r},t.createElement("td",{className:`fc-number ${i}`},o?.number),t.createElement("td",{className:`fc-line ${i}`},o&&t.createElement(ze,{line:o,marks:n(o,r),side:e.same?null:r})))}))}function hn({row:e,marksOf:n}){return e.same&&e.before&&e.after?t.createElement("tr",null,t.createElement("td",{className:"fc-number"},e.before.number),t.createElement("td",{className:"fc-number"},e.after.number),t.createElement("td",{className:"fc-line"},t.createElement(ze,{line:e.after,marks:n(e.after,"after"),side:null}))):t.createElement(t.Fragment,null,["before","after"].map(r=>{let o=e[r];return o?t.createElement("tr",{key:r},t.createElement("td",{className:`fc-number fc-${r}`},r==="before"?o.number:""),t.createElement("td",{className:`fc-number fc-${r}`},r==="after"?o.number:""),t.createElement("td",{className:`fc-line fc-${r}`},t.createElement(ze,{line:o,marks:n(o,r),side:r}))):null}))}var bn={before:"del",after:"ins"};function ze({line:e,marks:n,side:r}){return t.createElement(t.Fragment,null,r&&t.createElement(t.Fragment,null,t.createElement("span",{className:"fc-sign","aria-hidden":"true"},r==="before"?"−":"+"),t.createElement("span",{className:"fc-hidden"},r==="before"?"removed: ":"added: ")),gt(e.text,e.changed,n).map((o,i)=>{let s=o.changed&&r?bn[r]:"span";return t.createElement(s,{key:i,className:o.marks.length?"fc-clause":void 0},t.createElement(g,{text:o.text}))}))}var yt=e=>e?`${e.source}:${e.line}:${e.column}`:"",xt={flink:"Apache Flink",vvr:"Alibaba's VVR"};function vt({report:e}){return t.createElement("div",{className:"fc-verdict"},t.createElement("p",null,t.createElement(D,{outcome:e.outcome})," ",he(e.outcome)," ",t.createElement("span",{className:"fc-muted"},"Judged for ",xt[e.engine]??e.engine," ",e.engine_version,e.other_engine&&t.createElement(t.Fragment,null,"; ",xt[e.other_engine.engine]??e.other_engine.engine,": ",e.other_engine.outcome),".")),e.warnings.length>0&&t.createElement("ul",{className:"fc-bullets"},e.warnings.map((n,r)=>t.createElement("li",{key:r},n))))}function kt({report:e}){return t.createElement(h,{title:"Findings"},t.createElement("ol",{className:"fc-findings"},e.findings.map((n,r)=>t.createElement("li",{key:r,id:`finding-${r+1}`,tabIndex:-1,className:n.overruled_by?"fc-muted":""},t.createElement(yn,{finding:n,number:r+1})))))}function le({text:e}){return t.createElement("code",null,t.createElement(g,{text:e}))}function yn({finding:e,number:n}){return t.createElement(t.Fragment,null,t.createElement("h3",null,n,". ",e.title??e.rule," ",t.createElement(D,{outcome:e.outcome})),t.createElement("p",null,t.createElement(g,{text:e.message})),t.createElement(k,{facts:[["Before",e.before&&t.createElement(le,{text:e.before})],["After",e.after&&t.createElement(le,{text:e.after})],["Place",[yt(e.before_span),yt(e.after_span)].filter(Boolean).join(" → ")],["If it were resumed",e.consequence],["Known",[e.basis,e.source].filter(Boolean).join(": ")],["Rule",t.createElement("code",{key:"rule"},e.rule)],["Overruled by",e.overruled_by&&t.createElement("code",null,e.overruled_by)]]}))}var xn={same:"good",kept:"good",moved:"fair","starts from zero":"fair",added:"doubt","cannot be told":"doubt",dropped:"bad",removed:"bad"};function wn(e){let[n,r]=[e.before?.window??"",e.after?.window??""],o=n||r;return[...o?[{what:"window",name:n===r?o:`${n||"none"} → ${r||"none"}`,fate:n===r?"same":"changed"}]:[],...e.keys.map(({key:i,fate:s})=>({what:"key",name:i,fate:s})),...e.metrics.map(({metric:i,fate:s})=>({what:"metric",name:i,fate:s})),...(e.rows??[]).map(({rows:i,fate:s})=>({what:"rows",name:i,fate:s})),...(e.parts??[]).map(({part:i,before:s,after:a})=>({what:i,name:`${s||"none"} → ${a||"none"}`,fate:"changed"}))]}function Nt({operators:e}){return e.length?t.createElement(h,{title:"What becomes of the state"},t.createElement(z,{caption:"State by operator",heads:["Part","Name","Fate"],bodies:!0},e.map(n=>t.createElement("tbody",{key:n.path},t.createElement("tr",null,t.createElement("th",{scope:"rowgroup",colSpan:3},t.createElement(vn,{one:n}))),wn(n).map((r,o)=>t.createElement("tr",{key:o},t.createElement("td",null,r.what),t.createElement("td",null,t.createElement(le,{text:r.name})),t.createElement("td",null,t.createElement(x,{tone:xn[r.fate]??"fair"},r.fate)))))))):null}function vn({one:e}){let[n,r]=[e.before?.kind,e.after?.kind];return t.createElement("div",{className:"fc-stack"},t.createElement("span",null,n===r?n:n?r?`${n} → ${r}`:`gone: ${n}`:`new: ${r}`," ",t.createElement(D,{outcome:e.outcome})," ",t.createElement("span",{className:"fc-muted"},e.path)),e.consequence&&t.createElement("span",{className:"fc-plain-text"},"If it were resumed: ",e.consequence,e.resumed?.length?`; ${e.resumed.join("; ")}`:""))}var wt={whole:"A rewritten savepoint would keep all of the state.",partial:"A rewritten savepoint would keep a part of the state.",none:"A rewritten savepoint would keep nothing."};function St({migration:e,title:n}){return t.createElement(h,{title:n},wt[e.kept]&&t.createElement("p",null,wt[e.kept]),t.createElement(qe,{operators:e.operators??[]}))}function qe({operators:e}){return t.createElement(z,{caption:"What a migration keeps",heads:["Operator","State","Goes on","Begins","Gone"]},e.map((n,r)=>t.createElement("tr",{key:r},t.createElement("th",{scope:"row"},n.operator),t.createElement("td",null,n.state,n.reason&&t.createElement("span",{className:"fc-muted"},": ",n.reason)),[n.keeps,n.begins,n.gone].map((o,i)=>t.createElement("td",{key:i},o?.length?t.createElement("code",null,o.join(", ")):"–")))))}function Pt({report:e}){let n=e.sources??[];return n.length?t.createElement(h,{title:"Where the sources begin without state"},t.createElement(k,{facts:n.map(({table:r,begins:o})=>[r,o])})):null}function Tt({change:e}){return t.createElement(t.Fragment,null,e.next_steps.length>0&&t.createElement(h,{title:"What to do next"},t.createElement("ol",{className:"fc-steps"},e.next_steps.map((n,r)=>t.createElement("li",{key:r},t.createElement("p",null,t.createElement(at,{text:n.text})),n.commands.length>0&&t.createElement(j,{text:n.commands.join(`
`),label:`Commands of step ${r+1}`}))))),e.if_resumed.length>0&&t.createElement(h,{title:"If it were resumed all the same"},t.createElement("ul",{className:"fc-bullets"},e.if_resumed.map((n,r)=>t.createElement("li",{key:r},n)))))}var Lt=30;function Dt({ledger:e,deployment:n,number:r}){let o=_(tt(e,n,r),Lt);return t.createElement(te,{title:`Change of ${n}`,above:t.createElement(t.Fragment,null,t.createElement(c,{to:S()},"Flink deployments"),t.createElement("span",{"aria-hidden":"true"},"/"),t.createElement(c,{to:H(e,n)},n))},t.createElement(I,{answer:o},i=>t.createElement(At,{change:i})))}function At({change:e}){let n=Ce(e.report),{checked:r}=e;return t.createElement(t.Fragment,null,n&&t.createElement(vt,{report:n}),e.report_error&&t.createElement("p",{className:"fc-note fc-note-bad"},"The report cannot be read: ",e.report_error),t.createElement(dt,{decision:e.decision}),t.createElement(k,{facts:[["Checked",r&&t.createElement(y,{at:r.at})],["Version",t.createElement(w,{key:"version",id:e.sha256})],["Commit",r?.commit&&t.createElement(w,{id:r.commit})],["Author",r?.author],["Way taken",r?.branch],["Run",r?.run&&t.createElement(L,{run:r.run})]]}),t.createElement(kn,{change:e}),n&&t.createElement(kt,{report:n}),n&&t.createElement(Nt,{operators:n.operators??[]}),n?.migration&&t.createElement(St,{migration:n.migration,title:"What a migration would keep"}),t.createElement(Tt,{change:e}),n&&t.createElement(Pt,{report:n}),t.createElement(Sn,{entries:e.entries}))}function kn({change:e}){let{old:n,new:r}=e;return!n&&!r?null:r?n?t.createElement(h,{title:"Script"},n.script===r.script&&t.createElement("p",{className:"fc-muted"},"The script itself is the same."),t.createElement(bt,{old:n,new:r,report:Ce(e.report)}),t.createElement(Nn,{old:n,proposed:r})):t.createElement(h,{title:"Script"},t.createElement("p",{className:"fc-muted"},"Nothing ran before: this is the first version."),t.createElement(j,{text:r.script,label:"Proposed script"})):t.createElement(h,{title:"Script"},t.createElement("p",{className:"fc-note"},"The text of the proposed version was not kept. This one runs now:"),t.createElement(j,{text:n?.script??"",label:"Script that runs now"}))}var _t=e=>typeof e=="string"?e:JSON.stringify(e,null,1);function Nn({old:e,proposed:n}){let r=[],o=(i,s,a)=>{let[l,d]=[s===void 0?"–":_t(s),a===void 0?"–":_t(a)];l!==d&&r.push([i,t.createElement(t.Fragment,null,t.createElement("del",null,l)," → ",t.createElement("ins",null,d))])};for(let i of["settings","variables","files"])for(let s of new Set([...Object.keys(e[i]),...Object.keys(n[i])]))o(`${i}: ${s}`,e[i][s],n[i][s]);for(let i of["engine","engine_version","language","catalog"])o(i,e[i],n[i]);return o("functions",e.functions,n.functions),r.length?t.createElement("div",{className:"fc-beside"},t.createElement("h3",null,"Beside the script"),t.createElement(k,{facts:r})):null}function Sn({entries:e}){return t.createElement(h,{title:"What the ledger says of it"},t.createElement("ol",{className:"fc-list"},e.map(n=>t.createElement("li",{key:n.number},t.createElement("span",{className:"fc-muted"},"#",n.number," ",t.createElement(W,{at:n.at})),t.createElement("b",null,U(n.kind)),n.approved_by&&t.createElement("span",null,"by ",t.createElement(g,{text:n.approved_by})),n.reason&&t.createElement("span",null,"“",t.createElement(g,{text:n.reason}),"”"),t.createElement(q,{text:n.message})))))}function Ot({dagId:e,runId:n,taskId:r}){let o=_(e&&n?nt(e,n,r):void 0,Lt);return t.createElement("div",{className:"fc-root fc-page"},t.createElement(I,{answer:o},({changes:i})=>i.length===0?t.createElement("div",{className:"fc-note"},t.createElement("p",null,"No change of a Flink deployment belongs to this run."),t.createElement("p",null,"One appears here once a task of the run has checked or deployed a Flink job."," ",t.createElement(c,{to:S()},"All Flink deployments"))):i.map(s=>t.createElement("article",{key:`${s.ledger}/${s.deployment}/${s.number}`},t.createElement("h1",null,"Change of ",t.createElement(c,{to:H(s.ledger,s.deployment)},s.deployment)),t.createElement(At,{change:s}),t.createElement("p",null,t.createElement(c,{to:M(s.ledger,s.deployment,s.number)},"This change on a page of its own"))))))}function J({one:e}){let n=e.pending??e.checked;return n?t.createElement("div",{className:"fc-stack"},t.createElement(c,{to:M(e.ledger,e.deployment,n.number)},n.outcome?t.createElement(D,{outcome:n.outcome}):"first version",t.createElement("span",{className:"fc-hidden"}," change of ",e.deployment)),e.pending&&t.createElement("span",null,"waits ",t.createElement(V,{since:e.pending.at}))):t.createElement("span",{className:"fc-muted"},"–")}function Y({one:e}){return t.createElement("div",{className:"fc-stack"},e.unfinished&&t.createElement("span",null,t.createElement(x,{tone:e.unfinished_state==="interrupted"?"bad":"busy"},e.unfinished_state)," ",U(e.unfinished.kind).toLowerCase(),", ",t.createElement(y,{at:e.unfinished.at})),e.failed&&t.createElement("span",null,t.createElement(x,{tone:"bad"},e.entry?.kind==="rolled-back"?"rolled back":"failed")," ",t.createElement(y,{at:e.failed.at}),e.failed.message&&t.createElement("span",{className:"fc-clip"},t.createElement(g,{text:e.failed.message}))))}var Pn=25;function Tn(e){let n=new Set(e.redeploys.flatMap(r=>r.steps.map(({number:o})=>o)));return[...e.redeploys.map(r=>({number:r.last,redeploy:r})),...e.history.filter(({number:r})=>!n.has(r)).map(r=>({number:r.number,entry:r}))].sort((r,o)=>o.number-r.number)}function $t({page:e}){let[n,r]=v(!1),o=Tn(e),i=n?o:o.slice(0,Pn),s=a=>M(e.summary.ledger,e.summary.deployment,a);return t.createElement(t.Fragment,null,t.createElement("ol",{className:"fc-timeline"},i.map(a=>"redeploy"in a?t.createElement(Ln,{key:a.number,one:a.redeploy,page:e,to:s}):t.createElement(On,{key:a.number,entry:a.entry,to:s}))),i.length<o.length&&t.createElement("button",{type:"button",className:"fc-button",onClick:()=>r(!0)},"Show ",P(o.length-i.length,"earlier event")))}var _n={deployed:["good","Deployed"],adopted:["good","Adopted"],"rolled-back":["bad","Rolled back"],failed:["bad","Failed"],planned:["plain","Plan only"],unfinished:["busy","Not ended"]};function Ln({one:e,page:n,to:r}){let o=e.steps.findLast(({kind:d})=>d==="failed")?.number,i=e.message||n.history.find(({number:d})=>d===o)?.message,[s,a]=_n[e.end],l=(Date.parse(e.ended_at)-Date.parse(e.began_at))/1e3;return t.createElement("li",null,t.createElement("div",{className:"fc-event"},t.createElement(x,{tone:s},a),t.createElement(c,{to:r(e.last)},"version ",t.createElement(w,{id:e.sha256})),e.outcome&&t.createElement(D,{outcome:e.outcome}),e.start_mode&&t.createElement("span",null,ee(e.start_mode)),t.createElement("span",{className:"fc-muted"},"#",e.first===e.last?e.last:`${e.first}–${e.last}`,", ",t.createElement(y,{at:e.ended_at}))),t.createElement(q,{text:i}),t.createElement(k,{facts:[["Downtime",e.downtime_seconds!==null&&Oe(e.downtime_seconds)],["Approved by",e.approved_by],["Reason",e.reason],["Job",e.job_id&&t.createElement(w,{id:e.job_id})],["Run",e.run&&t.createElement(L,{run:e.run,task:!0})]]}),e.steps.length>1&&t.createElement("details",null,t.createElement("summary",null,P(e.steps.length,"step")," in ",Oe(l)),t.createElement("ol",{className:"fc-trail"},e.steps.map(d=>t.createElement("li",{key:d.number},U(d.kind)," ",t.createElement("span",{className:"fc-muted"},t.createElement(W,{at:d.at})))))))}var Dn={approved:"good",rejected:"bad",failed:"bad",interrupted:"bad"},An=new Set(["checked","approved","rejected","failed","rehearsed","backfilled","unchanged"]);function On({entry:e,to:n}){let r=e.rehearsal.finding;return t.createElement("li",null,t.createElement("div",{className:"fc-event"},t.createElement(x,{tone:Dn[e.kind]??"plain"},U(e.kind)),e.sha256&&An.has(e.kind)&&t.createElement(c,{to:n(e.number)},"version ",t.createElement(w,{id:e.sha256})),e.outcome&&t.createElement(D,{outcome:e.outcome}),typeof r=="string"&&t.createElement("b",null,r),t.createElement("span",{className:"fc-muted"},"#",e.number,", ",t.createElement(y,{at:e.at}))),t.createElement(q,{text:e.message}),t.createElement(k,{facts:[["Way taken",e.branch],["By",e.approved_by],["Reason",e.reason],["Author",e.kind==="checked"&&e.author],["Commit",e.kind==="checked"&&e.commit&&t.createElement(w,{id:e.commit})],["Savepoint",e.savepoint&&t.createElement("code",null,e.savepoint)],["Range",e.kind==="backfilled"&&be(e)],["Counts",ye(e)],["Run",e.run&&t.createElement(L,{run:e.run,task:!0})]]}))}var $n=30;function Et({ledger:e,deployment:n}){let r=_(Ae(e,n),$n);return t.createElement(te,{title:n,above:t.createElement(c,{to:S()},"Flink deployments")},t.createElement(I,{answer:r},o=>t.createElement(t.Fragment,null,t.createElement(En,{page:o}),t.createElement(h,{title:"History"},t.createElement($t,{page:o})),t.createElement(Cn,{page:o}),t.createElement(In,{page:o}),t.createElement(jn,{page:o}),t.createElement(Wn,{page:o}),t.createElement(Bn,{page:o}))))}function En({page:{summary:e}}){let{entry:n}=e;return t.createElement(t.Fragment,null,e.pending&&t.createElement("div",{className:"fc-note fc-note-ask"},t.createElement("p",null,t.createElement("b",null,"A change waits for a decision"),", ",t.createElement(V,{since:e.pending.at}),"."," ",t.createElement(c,{to:M(e.ledger,e.deployment,e.pending.number)},"See it and decide"))),t.createElement(k,{facts:[["Engine",n&&ge(n)],["Job",n?.job_id&&t.createElement(xe,{href:e.job_url},t.createElement(w,{id:n.job_id}))],["Runs like this",n&&t.createElement(V,{since:n.at})],["Started",n?.start_mode&&ee(n.start_mode)],["Approved by",n?.approved_by],["Team",e.team],["Owner",e.owned_by],["Last check",e.checked&&!e.pending&&t.createElement(J,{one:e})],["Redeploy",(e.unfinished||e.failed)&&t.createElement(Y,{one:e})],["Last savepoint",e.savepoint&&t.createElement(t.Fragment,null,t.createElement(y,{at:e.savepoint.taken_at}),e.savepoint.bytes!==null&&`, ${se(e.savepoint.bytes)}`)],["DAGs",e.dags.length>0&&e.dags.map((r,o)=>t.createElement(t.Fragment,{key:r},o>0&&", ",t.createElement(c,{to:_e(r)},r)))],["Last run",n?.run&&t.createElement(L,{run:n.run,task:!0})]]}))}function Cn({page:e}){return e.savepoints.length?t.createElement(h,{title:"Savepoints"},t.createElement("ol",{className:"fc-timeline"},[...e.savepoints].reverse().map(n=>t.createElement("li",{key:n.stopped},t.createElement(Fn,{one:n,page:e}))))):null}function Fn({one:e,page:n}){let o=(i=>n.history.find(s=>s.number===i)?.job_id)(e.left_by);return t.createElement(t.Fragment,null,t.createElement("div",{className:"fc-event"},t.createElement("code",{className:"fc-path"},e.path),e.way_back&&t.createElement(x,{tone:"good"},"way back"),e.disposed!==null?t.createElement(x,{tone:"plain"},"deleted"):t.createElement(x,{tone:"plain"},"kept")),t.createElement("p",{className:"fc-muted"},"Taken ",t.createElement(y,{at:e.taken_at}),e.bytes!==null&&`, ${se(e.bytes)}`,", when"," ",o?t.createElement(t.Fragment,null,"job ",t.createElement(w,{id:o})):"the job"," ","stopped (#",e.stopped,")",e.disposed!==null&&`; deleted by #${e.disposed}`),e.migrated_to&&t.createElement("p",null,"Rewritten to ",t.createElement("code",{className:"fc-path"},e.migrated_to)),e.starts.length>0?t.createElement("ul",{className:"fc-branches"},e.starts.map(i=>t.createElement("li",{key:i.number},t.createElement(x,{tone:i.kind==="rolled-back"?"bad":"good"},i.kind==="rolled-back"?"way back taken":"started")," ",i.job_id&&t.createElement(t.Fragment,null,"job ",t.createElement(w,{id:i.job_id}))," ",i.migrated&&"from the rewritten savepoint ",t.createElement("span",{className:"fc-muted"},"#",i.number,", ",t.createElement(W,{at:i.at}))))):t.createElement("p",{className:"fc-muted"},"Nothing started from it."))}var Ge=(e,n)=>e.history.filter(r=>r.kind===n).reverse(),Mn=e=>e==null?"":typeof e=="object"?JSON.stringify(e):String(e);function In({page:e}){let n=Ge(e,"rehearsed");return n.length?t.createElement(h,{title:"Rehearsals"},t.createElement("ol",{className:"fc-list"},n.map(r=>t.createElement("li",{key:r.number},t.createElement("b",null,Mn(r.rehearsal.finding)),typeof r.rehearsal.message=="string"&&t.createElement("span",null,r.rehearsal.message),t.createElement(c,{to:M(e.summary.ledger,e.summary.deployment,r.number)},"version ",t.createElement(w,{id:r.sha256})),t.createElement("span",{className:"fc-muted"},"#",r.number,", ",t.createElement(y,{at:r.at})))))):null}function jn({page:e}){let n=Ge(e,"migrated");return n.length?t.createElement(h,{title:"Migrations of state"},n.map(r=>t.createElement("div",{key:r.number,className:"fc-stack"},t.createElement("p",null,t.createElement("code",{className:"fc-path"},r.savepoint??r.migrated_from)," →"," ",t.createElement("code",{className:"fc-path"},r.migrated_to)," ",t.createElement("span",{className:"fc-muted"},"#",r.number,", ",t.createElement(y,{at:r.at}))),Array.isArray(r.migration.operators)&&t.createElement(qe,{operators:r.migration.operators})))):null}function Wn({page:e}){let n=Ge(e,"backfilled");return n.length?t.createElement(h,{title:"Backfills"},t.createElement(z,{caption:"Backfills",heads:["When","Range","Counts","Sinks","Run"]},n.map(r=>t.createElement("tr",{key:r.number},t.createElement("th",{scope:"row"},t.createElement(y,{at:r.at})),t.createElement("td",null,be(r)),t.createElement("td",null,ye(r)),t.createElement("td",null,Object.entries(r.sinks).map(([o,i])=>t.createElement("div",{key:o},o,": ",t.createElement("code",{className:"fc-path"},i)))),t.createElement("td",null,r.run?t.createElement(L,{run:r.run}):"–"))))):null}function Bn({page:{running:e}}){return e?t.createElement(h,{title:"Script that runs",aside:t.createElement("span",{className:"fc-muted"},"version ",t.createElement(w,{id:e.sha256}))},t.createElement(j,{text:e.script,label:"Script that runs"}),t.createElement(Hn,{version:e})):null}function Hn({version:e}){let n=[...Object.entries(e.settings),...Object.entries(e.variables).map(([r,o])=>[`\${${r}}`,o])];return t.createElement(t.Fragment,null,n.length>0&&t.createElement("div",{className:"fc-beside"},t.createElement("h3",null,"Settings"),t.createElement(k,{facts:n.map(([r,o])=>[r,t.createElement(le,{key:r,text:o})])})),e.catalog&&t.createElement("details",null,t.createElement("summary",null,"Catalog"),t.createElement(j,{text:e.catalog,label:"Catalog"})),Object.entries(e.files).map(([r,o])=>t.createElement("details",{key:r},t.createElement("summary",null,r),t.createElement(j,{text:o,label:r}))))}var Je=50,Un=30,Vn=300,zn=[["pending","wait for a decision"],["in_flight","in flight"],["interrupted","interrupted"],["failed","failed"],["unreadable","unreadable"]],qn=e=>{let n=new URLSearchParams(e);return{show:n.get("show")??"",team:n.get("team")??"",q:n.get("q")??"",page:Math.max(1,Math.floor(Number(n.get("page")))||1)}};function Ct(){let e=pe(),{search:n}=fe(),r=qn(n),o=de(r);T(()=>{o.current=r},[n]);let i=l=>{o.current={...o.current,page:1,...l};let{page:d,...f}=o.current;e(S({...f,page:d>1?d:void 0}),{replace:!0})},s=r.show.split(",").filter(Boolean),a=_(ce({team:r.team,q:r.q,limit:Je,offset:(r.page-1)*Je},s),Un);return t.createElement(te,{title:"Flink deployments"},t.createElement(I,{answer:a},l=>t.createElement(t.Fragment,null,t.createElement(Gn,{list:l}),t.createElement(Jn,{list:l}),l.counts.all===0?t.createElement(Yn,{list:l}):t.createElement(t.Fragment,null,t.createElement(Qn,{list:l,filters:r,kinds:s,go:i}),t.createElement("p",{className:"fc-muted",role:"status"},l.total===l.counts.all?P(l.total,"deployment"):`${l.total} of ${P(l.counts.all,"deployment")}`),l.total>0&&t.createElement(Xn,{list:l}),t.createElement(tr,{total:l.total,page:r.page,go:i})))))}function Gn({list:e}){let{pending:n,interrupted:r}=e.counts;return!n&&!r?null:t.createElement("p",{className:"fc-headline"},n>0&&t.createElement(c,{to:S({show:"pending"})},P(n,"waits","wait")," for a decision"),r>0&&t.createElement(c,{to:S({show:"interrupted"})},P(r,"redeploy is","redeploys are")," interrupted"))}function Jn({list:e}){let n=[...e.problems,...e.ledgers.filter(r=>r.error).map(r=>`Ledger ${r.uri??r.id}: ${r.error}`)];return n.length?t.createElement("ul",{className:"fc-note fc-note-bad"},n.map(r=>t.createElement("li",{key:r},r))):null}function Yn({list:e}){return t.createElement("div",{className:"fc-note"},e.ledgers.length?t.createElement("p",null,"There are no deployments that you may see. One appears with the first run of its DAG, for everybody who may read that DAG."):t.createElement("p",null,"Airflow knows no ledger. Name one in a Flink connection (extra ",t.createElement("code",null,"ledger"),"), or in the setting"," ",t.createElement("code",null,"[flinkcompat] ledgers"),"."))}function Qn({list:e,filters:n,kinds:r,go:o}){return t.createElement("form",{className:"fc-bar",role:"search",onSubmit:i=>i.preventDefault()},t.createElement(Zn,{value:n.q,change:i=>o({q:i})}),e.teams.length>0&&t.createElement("select",{"aria-label":"Team",value:n.team,onChange:i=>o({team:i.currentTarget.value})},t.createElement("option",{value:""},"all teams"),[...new Set([...e.teams,...n.team?[n.team]:[]])].map(i=>t.createElement("option",{key:i},i))),t.createElement("div",{className:"fc-chips",role:"group","aria-label":"Show only"},zn.filter(([i])=>e.counts[i]>0||r.includes(i)).map(([i,s])=>{let a=r.includes(i),l=a?r.filter(d=>d!==i):[...r,i];return t.createElement("button",{key:i,type:"button",className:"fc-chip","aria-pressed":a,onClick:()=>o({show:l.join(",")})},s," ",t.createElement("b",null,e.counts[i]))})))}function Zn({value:e,change:n}){let[r,o]=v(e);return T(()=>o(e),[e]),T(()=>{if(r===e)return;let i=setTimeout(()=>n(r),Vn);return()=>clearTimeout(i)},[r]),t.createElement("input",{type:"search","aria-label":"Search by name, DAG, team, owner, author, commit or job",placeholder:"Search: name, DAG, team, author, commit, job",maxLength:200,value:r,onChange:i=>o(i.currentTarget.value)})}var oe=["Deployment","What runs","Proposed","Redeploy","Last savepoint"];function Xn({list:e}){let[n,r]=we(),o=e.ledgers.length>1,i=e.deployments.map(s=>({one:s,key:`${s.ledger}/${s.deployment}`,ledger:o?Kn(e,s):""}));return t.createElement("div",{ref:n},r?t.createElement("ul",{className:"fc-list"},i.map(({key:s,...a})=>t.createElement(er,{key:s,...a}))):t.createElement(z,{caption:"Deployments",heads:oe},i.map(({key:s,...a})=>t.createElement(Rn,{key:s,...a}))))}var Kn=(e,n)=>{let r=e.ledgers.find(o=>o.id===n.ledger);return r?.connections.join(", ")||r?.uri||""};function Ft({one:e,ledger:n}){let r=e.owned_by!==e.team&&e.owned_by;return t.createElement("div",{className:"fc-stack"},t.createElement(c,{to:H(e.ledger,e.deployment)},e.deployment),t.createElement("span",{className:"fc-muted"},t.createElement(g,{text:[e.team,r,n].filter(Boolean).join(" · ")})))}function Mt({error:e}){return t.createElement(t.Fragment,null,t.createElement(x,{tone:"bad"},"unreadable")," ",e)}function Rn({one:e,ledger:n}){return t.createElement("tr",null,t.createElement("th",{scope:"row"},t.createElement(Ft,{one:e,ledger:n})),e.error?t.createElement("td",{colSpan:oe.length-1},t.createElement(Mt,{error:e.error})):t.createElement(t.Fragment,null,t.createElement("td",null,t.createElement(It,{one:e})),t.createElement("td",null,t.createElement(J,{one:e})),t.createElement("td",null,t.createElement(Y,{one:e})),t.createElement("td",null,e.savepoint?t.createElement(jt,{of:e.savepoint}):t.createElement("span",{className:"fc-muted"},"–"))))}function er({one:e,ledger:n}){return t.createElement("li",{className:"fc-narrow"},t.createElement(Ft,{one:e,ledger:n}),e.error?t.createElement("p",null,t.createElement(Mt,{error:e.error})):t.createElement(k,{facts:[[oe[1],t.createElement(It,{key:"runs",one:e})],[oe[2],(e.pending||e.checked)&&t.createElement(J,{one:e})],[oe[3],(e.unfinished||e.failed)&&t.createElement(Y,{one:e})],[oe[4],e.savepoint&&t.createElement(jt,{of:e.savepoint})]]}))}function It({one:e}){if(!e.entry)return t.createElement("span",{className:"fc-muted"},"nothing yet");let{at:n,approved_by:r,job_id:o,start_mode:i}=e.entry;return t.createElement("div",{className:"fc-stack"},t.createElement("span",null,ge(e.entry),o&&t.createElement(t.Fragment,null,", job"," ",t.createElement(xe,{href:e.job_url},t.createElement(w,{id:o})))),t.createElement("span",{className:"fc-muted"},t.createElement(V,{since:n}),i&&`, ${ee(i)}`,r&&t.createElement(g,{text:`, approved by ${r}`})))}function jt({of:e}){return t.createElement("div",{className:"fc-stack"},t.createElement("span",{title:e.path},t.createElement(y,{at:e.taken_at})),e.bytes!==null&&t.createElement("span",{className:"fc-muted"},se(e.bytes)))}function tr({total:e,page:n,go:r}){let o=Math.max(1,Math.ceil(e/Je));return o===1&&n===1?null:t.createElement("nav",{className:"fc-paging","aria-label":"Pages of the list"},t.createElement("button",{type:"button",className:"fc-button",disabled:n<=1,onClick:()=>r({page:n-1})},"Previous"),t.createElement("span",null,"Page ",n," of ",o),t.createElement("button",{type:"button",className:"fc-button",disabled:n>=o,onClick:()=>r({page:n+1})},"Next"))}var nr=5,rr=60;function Wt(){let e=_(ce({limit:nr},["pending","interrupted","failed"]),rr);return t.createElement("section",{className:"fc-root fc-card","aria-label":"Flink deployments"},t.createElement("div",{className:"fc-section-head"},t.createElement("h2",null,t.createElement(c,{to:S()},"Flink deployments")),e.data&&t.createElement("span",{className:"fc-muted"},P(e.data.counts.all,"deployment"))),t.createElement(I,{answer:e},n=>n.deployments.length===0?t.createElement("p",{className:"fc-muted"},"Nothing waits for a decision, nothing is interrupted."):t.createElement(t.Fragment,null,t.createElement("ul",{className:"fc-list"},n.deployments.map(r=>t.createElement("li",{key:`${r.ledger}/${r.deployment}`},t.createElement(c,{to:H(r.ledger,r.deployment)},r.deployment),r.pending&&t.createElement(J,{one:r}),t.createElement(Y,{one:r})))),n.total>n.deployments.length&&t.createElement(c,{to:S({show:"pending,interrupted,failed"})},"All ",n.total," that need somebody"))))}var Bt=`/* Airflow's UI sets the variables of Chakra UI, and a class of the root element for the theme: so both themes follow. */
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
.fc-sign {
  margin-inline-start: -14px;
  position: absolute;
  user-select: none;
}
.fc-line {
  overflow-wrap: anywhere;
  padding: 0 8px 0 18px;
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
`;function ir(){let{ledger:e,deployment:n,change:r}=Re(fe().search);if(!e||!n)return t.createElement(Ct,null);let o=`${e}/${n}/${r??""}`;return r?t.createElement(Dt,{key:o,ledger:e,deployment:n,number:r}):t.createElement(Et,{key:o,ledger:e,deployment:n})}function sr(){let e=new CSSStyleSheet;e.replaceSync(Bt),document.adoptedStyleSheets=[...document.adoptedStyleSheets,e],Object.assign(globalThis,{"Flink deployments":ir,"Flink change":Ot,"Flink overview":Wt})}sr();})();
