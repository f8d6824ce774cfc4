type Settled<Parts extends readonly unknown[]> = { -readonly [Key in keyof Parts]: Awaited<Parts[Key]> }

/** As `Promise.all`, but at once where none of the parts is a promise. */
export function allOf<const Parts extends readonly unknown[]>(parts: Parts): Settled<Parts> | Promise<Settled<Parts>> {
  const isReady = parts.every((part) => !(part instanceof Promise))
  return isReady ? (parts as unknown as Settled<Parts>) : (Promise.all(parts) as Promise<Settled<Parts>>)
}
