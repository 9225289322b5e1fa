import { html } from "./vendor/preact-htm.js";
import { utc } from "./format.js";
import { Instant, Table } from "./parts.js";

/** Runs to come: by the reader's clock, in the schedule's zone and in UTC, with what a change of the clock does. */
export function NextRuns({ next, zone }) {
  const columns = [
    { name: "name", label: "Your time", head: true, cell: ({ nominal }) => html`<${Instant} at=${nominal} />` },
    { name: "near", label: "In", cell: ({ nominal }) => html`<${Instant} at=${nominal} near />` },
    { name: "zone", label: zone, cell: ({ local }) => `${local.slice(0, 10)} ${local.slice(11, 19)} ${local.slice(19)}` },
    { name: "utc", label: "UTC", cell: ({ nominal }) => utc(nominal) },
    { name: "clock wrap", label: "Clock", cell: ({ clock }) => clock && html`<strong>${clock}</strong>` },
  ];
  const changes = next.some(({ clock }) => clock);
  const shown = columns.filter(({ name }) => (name === "zone" ? zone !== "UTC" : changes || name !== "clock wrap"));
  return html`<${Table} caption="Next runs" columns=${shown} rows=${next} keyOf=${({ nominal }) => nominal} />`;
}
