/** A text in which backticks mark what is typed as it stands, as in Markdown. */
export function Marked({ text }: { readonly text: string }) {
  const parts = text.split('`')
  // A backtick without a second one is itself.
  const end = parts.length % 2 === 0 ? parts.length - 1 : parts.length
  return (
    <>
      {parts.slice(0, end).map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}
      {parts.slice(end).map((part) => `\`${part}`)}
    </>
  )
}
