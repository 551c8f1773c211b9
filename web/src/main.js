// Builds the page from the JSON beside it. Nothing is fetched, nothing is computed that the
// result does not say: this file only decides the order.
import {markLoad} from './charts.js';
import {h} from './dom.js';
import {answers, masthead, notices, tiles} from './headline.js';
import {gpuTime, pools, racks, transfers} from './machine.js';
import {origins, scenario, trace} from './provenance.js';
import {latency, load, objectives} from './service.js';

const data = JSON.parse(document.getElementById('data').textContent);
const main = document.getElementById('report');

if (data.summary.steady !== null) markLoad(data.summary.steady.from_s, data.summary.steady.to_s);

const sections = [load, latency, objectives, gpuTime, pools, racks, transfers, origins, trace, scenario]
    .map((build) => build(data)).filter((each) => each !== null);

const skip = h('a', {class: 'skip', href: '#answers'}, 'Skip to the answers');
const nav = h('nav', {'aria-label': 'Sections'}, sections.map((each) =>
    h('a', {href: `#${each.id}`}, each.dataset.short)));

main.replaceChildren(masthead(data), ...notices(data).filter(Boolean), answers(data), tiles(data), ...sections);
document.body.prepend(skip, nav);
if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
document.documentElement.setAttribute('data-ready', 'true');
