/** Properties that fail after a step: those that are asked. Some are published as false, and are asked by nobody. */

/** @returns {string[]} */
export function violationsOf(view, step) {
  const asked = new Set(view.properties.filter((one) => one.asked).map((one) => one.property));
  return step.violates.filter((name) => asked.has(name));
}

/** The first step after which a property fails. */
export function firstViolation(view) {
  return view.steps.find((step) => violationsOf(view, step).length > 0) ?? null;
}
