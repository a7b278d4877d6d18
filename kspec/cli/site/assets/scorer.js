/* The order of search results: a page whose title has all that was looked for comes first ("KIP-320" is two words to the index). */
"use strict";

const wanted = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();

var Scorer = {
  score: ([docname, title, anchor, descr, score]) => score + (wanted && title.toLowerCase().includes(wanted) ? 100 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
