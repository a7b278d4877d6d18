/** Leader epochs have colours that people with any kind of colour vision tell apart; each record has its epoch as a number, too. */

const COLOURS = 8;

/** The class of an epoch's colour; colours come again after eight epochs. */
export function epochClass(epoch) {
  return epoch === null || epoch < 0 ? "epoch-none" : `epoch-${epoch % COLOURS}`;
}
