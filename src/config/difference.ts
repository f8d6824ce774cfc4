import { withoutSecrets } from './item-secrets.ts'
import { changedKeys, isLive, valueAt } from './live.ts'
import { OPTION_BY_KEY, OPTIONS } from './options.ts'

/** An option with two values, as they may be shown: of a secret only whether there is one. */
export interface Difference {
  readonly key: string
  readonly running: unknown
  readonly configured: unknown
  readonly needs_restart: boolean
}

/** The options that differ between two configurations. */
export function configDifferences(running: object, configured: object): Difference[] {
  return changedKeys(running, configured).map((key) => ({
    key,
    running: shown(key, valueAt(running, key)),
    configured: shown(key, valueAt(configured, key)),
    needs_restart: !isLive(key),
  }))
}

/** An option whose value is not the default. */
export interface OwnValue {
  readonly key: string
  readonly value: unknown
  readonly default: unknown
}

/** The options that do not have their default, as they may be shown. */
export function ownValues(config: object): OwnValue[] {
  return OPTIONS.filter(({ holds }) => holds === undefined).flatMap(({ key, schema }) => {
    const value = valueAt(config, key)
    const isDefault = JSON.stringify(value) === JSON.stringify(schema.default)
    return isDefault || value === undefined ? [] : [{ key, value: shown(key, value), default: schema.default ?? null }]
  })
}

/** A value without its secrets. */
function shown(key: string, value: unknown): unknown {
  if (value === undefined) return null
  const { schema } = OPTION_BY_KEY.get(key)!
  return schema.secret ? '[hidden]' : withoutSecrets(schema, value)
}
