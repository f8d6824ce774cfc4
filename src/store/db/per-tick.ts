/**
 * Batches look-ups: all keys that are asked for until the current tick ends go into one query.
 *
 * @param load returns values for those keys that exist
 */
export function perTick<Key, Value>(
  load: (keys: readonly Key[]) => Promise<Map<Key, Value>>,
): (keys: Iterable<Key>) => Promise<ReadonlyMap<Key, Value>> {
  let gathering: { readonly keys: Set<Key>; readonly loaded: Promise<Map<Key, Value>> } | undefined

  function begin(): NonNullable<typeof gathering> {
    const keys = new Set<Key>()
    const loaded = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      gathering = undefined
      return load([...keys])
    })
    return { keys, loaded }
  }

  return (wanted) => {
    gathering ??= begin()
    for (const key of wanted) gathering.keys.add(key)
    return gathering.loaded
  }
}
