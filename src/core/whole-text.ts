/**
 * The same text in one piece. One that was put together of others is a tree of these, which takes several times the memory of the text:
 * do this with what stays.
 */
export function wholeText(text: string): string {
  // The engine joins the pieces to look at a character.
  return Number.isNaN(text.charCodeAt(0)) ? '' : text
}
