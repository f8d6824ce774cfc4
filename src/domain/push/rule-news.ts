/** Counts changes of push rules, and remembers who made the last ones. */
export interface RuleNews {
  version(): number
  /** The users whose rules changed since a version; undefined if that is too long ago. */
  since(version: number): readonly number[] | undefined
  add(userNid: number): void
  /** Anybody's rules may have changed. */
  missed(): void
}

/** Changes that are remembered, so that what was derived from rules is derived again only for who changed theirs. */
const CHANGES_KEPT = 1_000

export function createRuleNews(): RuleNews {
  let version = 0
  /** Who changed rules, the last one at `version`. */
  let recent: number[] = []
  return {
    version: () => version,
    since(before) {
      const count = version - before
      return count > recent.length ? undefined : recent.slice(recent.length - count)
    },
    add(userNid) {
      version++
      recent.push(userNid)
      if (recent.length > 2 * CHANGES_KEPT) recent = recent.slice(-CHANGES_KEPT)
    },
    missed() {
      version++
      recent = []
    },
  }
}
