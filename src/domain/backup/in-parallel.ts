/** Runs `work` for all items, at most `atOnce` at the same time. Fails with the first failure, after those that were running have ended. */
export async function mapInParallel<Item>(
  items: Iterable<Item>,
  atOnce: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items[Symbol.iterator]()
  let failed: { readonly error: unknown } | undefined
  const next = async (): Promise<void> => {
    for (let item = left.next(); !item.done && !failed; item = left.next()) {
      try {
        await work(item.value)
      } catch (error) {
        failed ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, next))
  if (failed) throw failed.error
}
