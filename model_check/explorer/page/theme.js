/** Dark or light: as the system says, until the reader says otherwise. */

const THEMES = ["system", "light", "dark"];
const KEPT_AS = "kspec-theme";

export function presentTheme() {
  return document.documentElement.dataset.theme ?? "system";
}

/** Take the next theme; the choice is kept where the browser keeps anything. */
export function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(presentTheme()) + 1) % THEMES.length]);
}

export function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEPT_AS, theme);
  } catch {
    // A browser that keeps nothing shows what its system says.
  }
}

export function recallTheme() {
  try {
    const kept = localStorage.getItem(KEPT_AS);
    if (THEMES.includes(kept)) setTheme(kept);
  } catch {
    // As above.
  }
}
