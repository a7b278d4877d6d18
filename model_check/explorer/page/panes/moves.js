/** The moves, by party: those that are possible as buttons, the others with what forbids them. */

import { breakable, button, counted, element, fill } from "../dom.js";
import { obstacle, rulesList } from "./rules.js";

/** @param {HTMLElement} pane @param {import("../session.js").Session} session @param {{words: string}} filter */
export function drawMoves(pane, session, filter) {
  const { view } = session;
  if (view === null || !view.moves || view.run.told) return fill(pane);
  const wanted = view.moves.filter((move) => fits(move, filter.words));
  const possible = possibleMoves(view);
  const shortcuts = new Map(possible.map((move, place) => [move.index, place + 1]));
  return fill(
    pane,
    element("h2", {}, "Actions ", element("small", {}, `${possible.length} of ${view.moves.length} possible`)),
    filterField(session, filter, pane),
    wanted.length === 0 ? element("p", { class: "quiet" }, "No action has this in its name.") : null,
    parties(wanted).map(([party, moves]) => partyMoves(session, party, moves, shortcuts, filter.words)),
  );
}

/** The moves that are possible, in the order in which they stand on the page. */
export function possibleMoves(view) {
  return parties(view?.moves ?? []).flatMap(([, moves]) => moves.filter((move) => move.enabled));
}

function fits(move, words) {
  const text = `${move.words} ${move.party}`.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function filterField(session, filter, pane) {
  const field = element("input", {
    type: "search",
    "data-key": "filter",
    value: filter.words,
    placeholder: "filter, e.g. fetch 2",
    "aria-label": "Filter the actions",
    "aria-keyshortcuts": "/",
    oninput: () => {
      filter.words = field.value;
      drawMoves(pane, session, filter);
      const again = pane.querySelector('[data-key="filter"]');
      again.setSelectionRange(again.value.length, again.value.length);
    },
  });
  return field;
}

const ORDER = ["producer", "controller", "coordinator"];

function parties(moves) {
  const groups = new Map();
  for (const move of moves) groups.set(move.party, [...(groups.get(move.party) ?? []), move]);
  const place = (party) => (ORDER.includes(party) ? ORDER.indexOf(party) : ORDER.length + Number(party.match(/\d+/)?.[0] ?? 99));
  return [...groups].sort(([one], [other]) => place(one) - place(other));
}

function partyMoves(session, party, moves, shortcuts, words) {
  const enabled = moves.filter((move) => move.enabled);
  const disabled = moves.filter((move) => !move.enabled);
  return element(
    "section",
    { class: "party" },
    element("h3", {}, party),
    element("ul", { class: "possible" }, enabled.flatMap((move) => choicesOf(session, move, shortcuts.get(move.index)))),
    disabled.length === 0 ? null : forbiddenMoves(session, party, disabled, words !== "" && disabled.length <= 8),
  );
}

function choicesOf(session, move, number) {
  return Array.from({ length: move.choices ?? 1 }, (_, place) => {
    const choice = place + 1;
    const taken = session.view.steps[session.view.position - 1];
    const isNext = taken?.action === move.action && same(taken.args, move.args) && taken.choice === choice;
    const isBeyond = session.isRecordOnly && !isNext;
    const shortcut = !isBeyond && number <= 9 && choice === 1 ? number : null;
    return element(
      "li",
      {},
      button(`move-${move.index}-${choice}`, moveLabel(move, choice), () => session.step(move, choice), {
        class: isNext ? "next" : null,
        title: isNext ? "The next step of this run" : isBeyond ? "This page has a recorded run alone; open its link in the explorer to take other steps" : null,
        disabled: isBeyond,
        "aria-keyshortcuts": shortcut,
      }),
      shortcut === null ? null : element("kbd", { "aria-hidden": "true" }, String(shortcut)),
    );
  });
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** An action's name, then its arguments; the way, where it may lead to several states. */
function moveLabel(move, choice) {
  const [name, ...rest] = move.words.split("  ");
  const way = (move.choices ?? 1) > 1 ? `way ${choice} of ${move.choices}` : null;
  const more = [...rest, way].filter(Boolean).join(", ");
  return [element("span", { class: "name" }, breakable(name)), more ? element("span", { class: "arguments" }, more) : null].filter(Boolean);
}

/** Moves that are not possible, as a list that is made when it is opened: there may be hundreds. */
function forbiddenMoves(session, party, moves, open) {
  const list = element("ul", {});
  const show = () => list.childElementCount === 0 && list.append(...moves.map((move) => element("li", {}, forbiddenMove(session, move))));
  if (open) show();
  return element(
    "details",
    { class: "forbidden", "data-key": `forbidden-${party}`, open, ontoggle: (event) => event.target.open && show() },
    element("summary", {}, counted(moves.length, "action"), " not possible"),
    list,
  );
}

function forbiddenMove(session, move) {
  const more = element("div", { class: "why" }, obstacle(move.forbidden_by));
  return element(
    "details",
    { "data-key": `why-${move.index}`, ontoggle: (event) => event.target.open && explain(session, move, more) },
    element("summary", {}, moveLabel(move, 1)),
    more,
  );
}

/** The rules that forbid a move are asked for when they are wanted. */
async function explain(session, move, more) {
  if (more.dataset.asked || session.isRecordOnly) return;
  more.dataset.asked = "yes";
  const answer = await session.ask({ do: "why", action: move.action, args: move.args });
  const rules = answer.forbidden_by?.rules ?? [];
  if (rules.length > 0) more.append(rulesList(session, rules, `forbids-${move.index}`));
}
