import { createHmac } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { NodeFacts, NodeRow } from '../../store/cluster/nodes.ts'

/** What another node is told of the shared options: JSON, from keys to digests of values that are not the default. */
export type NodeSettings = string

const DIGEST_CHARS = 12

/** Gives the options that nodes share and that do not have their default, with the JSON of their values. */
export type SharedValues = (config: Config) => readonly { readonly key: string; readonly json: string }[]

/**
 * Gives the settings of this process, as they are now: some options change while it runs.
 *
 * @param secret of the cluster: without it, nobody finds a value by trying
 */
export function settingsOf(config: Config, sharedValues: SharedValues, secret: string): () => NodeSettings {
  let before: readonly unknown[] = []
  let settings = ''
  return () => {
    // A changed section is another object.
    const sections = Object.values(config)
    if (sections.some((section, at) => section !== before[at])) settings = digestsOf(sharedValues(config), secret)
    before = sections
    return settings
  }
}

function digestsOf(values: ReturnType<SharedValues>, secret: string): NodeSettings {
  const digests = values.map(({ key, json }) => {
    const digest = createHmac('sha256', secret).update(`hearth setting ${key} ${json}`).digest('base64url')
    return [key, digest.slice(0, DIGEST_CHARS)]
  })
  return JSON.stringify(Object.fromEntries(digests))
}

/** The shared options of which two nodes have different values, and those that one of them does not know. */
export function differingOptions(own: NodeSettings, other: NodeSettings): string[] {
  if (own === other) return []
  const [one, two] = [read(own), read(other)]
  const keys = new Set([...Object.keys(one), ...Object.keys(two)])
  return [...keys].filter((key) => one[key] !== two[key]).sort()
}

function read(settings: NodeSettings): Readonly<Record<string, string>> {
  return JSON.parse(settings) as Record<string, string>
}

/**
 * Says whether a node that serves has the settings of this one, and in the log which options differ, each time when they become others.
 * Of a node of an earlier release that is not known.
 */
export function watchSettings({ own, log }: { readonly own: NodeFacts; readonly log: Logger }) {
  let said = ''
  return ({ settings }: Pick<NodeRow, 'settings'>): boolean => {
    const options = settings === undefined ? [] : differingOptions(own.settings, settings)
    const all = options.join(' ')
    if (all !== said) {
      if (options.length > 0) log.warn({ options }, DIFFERENT)
      else if (settings !== undefined) log.info('the options that nodes share are the same again')
      said = all
    }
    return settings !== undefined && options.length === 0
  }
}

const DIFFERENT =
  'these options are others than at the node that serves: while they are, this node passes all requests on, and answers differently once it serves; give all nodes the same values, then restart those that have the older ones'
