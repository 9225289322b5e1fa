// JSON whose numbers come out as they went in.

// What JavaScript would round, or make Infinity, stays the text that it is: JSON.stringify writes it as it was.
const exact = (_, value, { source }) =>
  typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER ? JSON.rawJSON(source) : value;

/** What JSON says. Throws a SyntaxError. */
export const parseJson = (text) => JSON.parse(text, exact);
