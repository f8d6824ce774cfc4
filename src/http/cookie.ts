/** The cookie of a name in a `Cookie` header. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  const pairs = (header ?? '').split('; ')
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}
