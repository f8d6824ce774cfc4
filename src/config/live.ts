import { OPTIONS } from './options.ts'
import type { Config } from './schema.ts'

/** Options, or sections of them, whose new value counts as soon as the configuration is read again. All code reads these when it needs them. */
const LIVE: readonly string[] = [
  'log.level',
  'federation.allow',
  'federation.deny',
  'rate_limits',
  'registration.enabled',
  'registration.token',
  'registration.require_token',
  'registration.shared_secret',
  'registration.allow_guests',
  'registration.max_users',
  'passwords.min_length',
  'passwords.require_lowercase',
  'passwords.require_uppercase',
  'passwords.require_digit',
  'passwords.require_symbol',
  'login_tokens.from_session',
  'user_directory.all_local_users',
  'well_known.server',
  'well_known.support_page',
  'well_known.support_email',
  'well_known.policy_server_key',
  'media.keep_local_days',
  'media.keep_remote_days',
  'limits.max_sync_timeout_ms',
]

/** Whether a new value of an option counts without a restart. */
export function isLive(key: string): boolean {
  return LIVE.some((live) => key === live || key.startsWith(`${live}.`))
}

/** A configuration of which some values can be replaced. */
export interface LiveConfig {
  readonly config: Config
  /** Takes over the values that count at once. Gives the keys that differ, by whether they do. */
  use(next: Config): ConfigChange
}

export interface ConfigChange {
  readonly applied: readonly string[]
  readonly needRestart: readonly string[]
}

type Tree = Readonly<Record<string, unknown>>

export function createLiveConfig(first: Config): LiveConfig {
  /** What is in force. Sections are replaced as a whole, so that nobody sees half of a change. */
  let inForce = first as Tree
  const config = {}
  for (const name of Object.keys(first)) {
    Object.defineProperty(config, name, { enumerable: true, get: () => inForce[name] })
  }
  return {
    config: Object.freeze(config) as Config,
    use(next) {
      const changed = changedKeys(inForce, next as Tree)
      const applied = changed.filter(isLive)
      for (const key of applied) inForce = withValue(inForce, key.split('.'), valueAt(next as Tree, key))
      return { applied, needRestart: changed.filter((key) => !isLive(key)) }
    },
  }
}

/** The keys of options that have different values in two configurations. */
export function changedKeys(one: object, other: object): string[] {
  return OPTIONS.filter(({ holds }) => holds === undefined)
    .map(({ key }) => key)
    .filter((key) => JSON.stringify(valueAt(one, key)) !== JSON.stringify(valueAt(other, key)))
}

export function valueAt(config: object, key: string): unknown {
  return key.split('.').reduce<unknown>((value, name) => (value as Tree | undefined)?.[name], config)
}

function withValue(tree: Tree, [name = '', ...rest]: readonly string[], value: unknown): Tree {
  if (rest.length > 0) return Object.freeze({ ...tree, [name]: withValue((tree[name] ?? {}) as Tree, rest, value) })
  const { [name]: _former, ...others } = tree
  return Object.freeze(value === undefined ? others : { ...others, [name]: value })
}
