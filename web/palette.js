// Colours of the charts live in the style sheet, so that light, dark and print have their own. Hues and lightness
// differ as well as dashes do: a chart has to be readable without either.

export const HUES = ['blue', 'orange', 'green', 'purple', 'grey', 'brown'];

export const DASHES = { solid: [], dashed: [7, 4], dotted: [2, 3] };

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
