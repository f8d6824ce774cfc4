import { type CompiledRules, compileRuleset, DEFAULT_PUSH_RULES } from '../../core/push/compiled-rules.ts'
import { NO_OWN_RULES, type OwnRules } from '../../core/push/own-rules.ts'

/** Rules as they are stored, which several users may have. */
export interface SharedRules {
  readonly text: string
  readonly stored: OwnRules
  readonly compiled: CompiledRules
}

/** Rules are read and compiled once for all users in memory who have the same. */
export interface Sharing {
  /** Of users who have changed none. */
  readonly none: SharedRules
  /** The rules of one more user. */
  take(text: string): SharedRules
  /** A user does not have them any more, or is not in memory. */
  release(shared: SharedRules): void
  clear(): void
}

interface Counted extends SharedRules {
  users: number
}

export function createSharing(): Sharing {
  const byText = new Map<string, Counted>()
  return {
    none: { text: '', stored: NO_OWN_RULES, compiled: DEFAULT_PUSH_RULES },
    take(text) {
      let shared = byText.get(text)
      if (!shared) {
        const stored = JSON.parse(text) as OwnRules
        shared = { text, stored, compiled: compileRuleset(stored), users: 0 }
        byText.set(text, shared)
      }
      shared.users++
      return shared
    },
    release(shared) {
      const counted = byText.get(shared.text)
      if (counted === shared && --counted.users === 0) byText.delete(shared.text)
    },
    clear: () => byText.clear(),
  }
}
