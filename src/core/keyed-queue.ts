/** Runs work of one key one after another, and work of different keys in parallel. */
export interface KeyedQueue<Key> {
  run<Result>(key: Key, work: () => Promise<Result>): Promise<Result>
}

export function createKeyedQueue<Key>(): KeyedQueue<Key> {
  const ends = new Map<Key, Promise<unknown>>()

  return {
    run(key, work) {
      const before = ends.get(key)
      const result = before ? before.then(work, work) : work()
      const end = result.then(
        () => undefined,
        () => undefined,
      )
      ends.set(key, end)
      void end.then(() => {
        if (ends.get(key) === end) ends.delete(key)
      })
      return result
    },
  }
}
