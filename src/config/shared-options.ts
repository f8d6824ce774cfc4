import { valueAt } from './live.ts'
import { OPTIONS, type OptionSchema } from './options.ts'

/** The options that all nodes of a cluster share: an option is one of them unless it is marked. */
export const SHARED_OPTIONS = OPTIONS.filter(({ holds, isOfNode }) => holds === undefined && !isOfNode)

/** The shared options that do not have their default, with the JSON of their values, secrets too. */
export function sharedValues(config: object): { readonly key: string; readonly json: string }[] {
  return SHARED_OPTIONS.flatMap(({ key, schema }) => {
    const json = compared(schema, valueAt(config, key))
    return json === undefined || json === compared(schema, schema.default) ? [] : [{ key, json }]
  })
}

/** A file is at another path on each machine: of a path, it counts whether there is one. */
function compared({ path, items }: OptionSchema, value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (path) return 'true'
  return JSON.stringify(items?.path ? (value as readonly string[]).length > 0 : value)
}
