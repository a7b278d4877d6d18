/** What is other in two states: slots whose words differ. */

/** Every slot of a view's state, with its party. */
export function slotsOf({ state }) {
  const parts = [...state.brokers.map((one) => [one.party, one]), [state.controller.party, state.controller], ["producer", state.clients]];
  return parts.flatMap(([party, part]) => part.slots.map((slot) => ({ ...slot, party })));
}

/** The answer to `diff` from two views. */
export function differencesBetween(before, after) {
  const old = new Map(slotsOf(before).map((slot) => [slot.slot, slot.words]));
  const changes = slotsOf(after)
    .filter((slot) => old.get(slot.slot) !== slot.words)
    .map((slot) => ({ slot: slot.slot, party: slot.party, before: old.get(slot.slot), after: slot.words }));
  return { answer: "diff", from: before.position, to: after.position, changes };
}
