import cluster from 'node:cluster'
import type { LoadedConfig } from '../../../config/load.ts'
import type { Config } from '../../../config/schema.ts'

/** The environment in which a parent says to a process that it is one of its nodes. */
export const NODE_ORDERS = 'HEARTH_NODE'

/** What a parent says to a node when it starts it. */
export interface NodeOrders {
  /** From 1. */
  readonly number: number
  /** What it is called in the database. */
  readonly holder: string
  /** The secret of this run, if none is configured. */
  readonly secret: string
}

/** What a parent says to a node while it runs. */
export type Order =
  /** `isLast`: no other node of this parent is left. */
  | { readonly kind: 'stop'; readonly isLast: boolean }
  | { readonly kind: 'reload' }
  /** `metrics`: all of them. `ready`: nothing, or why it is not. */
  | { readonly kind: 'ask'; readonly id: number; readonly about: Question }

export type Question = 'metrics' | 'ready'

/** What a node says to its parent. */
export type News =
  /** It hears orders from now on. */
  | { readonly kind: 'begun' }
  | { readonly kind: 'up'; readonly isServing: boolean; readonly port: number; readonly httpsPorts: readonly number[] }
  | { readonly kind: 'answer'; readonly id: number; readonly text: string }

/** This process as a node of its parent. It ends with the parent, however that ends: `node:cluster` sees to it. */
export interface ParentLink {
  readonly number: number
  readonly holder: string
  /** The configuration of this node, made of that of all. */
  own(loaded: LoadedConfig): LoadedConfig
  /** Aborted when the parent wants this node to stop. */
  readonly stop: AbortSignal
  /** Whether nobody is left who could take the place of this node. */
  isLast(): boolean
  /** How long a stop says so; undefined for as long as usual. */
  farewellMs(): number | undefined
  onReload(reload: () => void): void
  answer(answers: Readonly<Record<Question, () => Promise<string>>>): void
  up(news: Omit<Extract<News, { kind: 'up' }>, 'kind'>): void
  /** Lets this process end: nothing can be said any more. */
  leave(): void
}

/** No balancer has to notice that one of several nodes on a port stops: the others go on accepting connections there. */
const FAREWELL_MS = 300

/** Undefined for a process that no parent started. */
export function parentOf(
  env: Readonly<Record<string, string | undefined>>,
  config: Pick<Config, 'cluster'>,
): ParentLink | undefined {
  const { worker } = cluster
  const words = env[NODE_ORDERS]
  if (worker === undefined || words === undefined) return undefined
  const { number, holder, secret } = JSON.parse(words) as NodeOrders
  const isAmongMachines = config.cluster.secret !== undefined
  const stopping = new AbortController()
  const reloads: (() => void)[] = []
  let isLast = false
  let answers: Readonly<Record<Question, () => Promise<string>>> | undefined
  const send = (news: News): void => void worker.send(news, () => {})

  async function answer(id: number, about: Question): Promise<void> {
    const text = await answers?.[about]().catch(() => undefined)
    if (text !== undefined) send({ kind: 'answer', id, text })
  }

  worker.on('message', (order: Order) => {
    if (order.kind === 'ask') void answer(order.id, order.about)
    if (order.kind === 'reload') for (const reload of reloads) reload()
    if (order.kind === 'stop') {
      isLast = order.isLast
      stopping.abort()
    }
  })
  send({ kind: 'begun' })
  return {
    number,
    holder,
    stop: stopping.signal,
    own: (loaded) => ({ config: ownConfig(loaded.config, { number, secret }), origins: loaded.origins }),
    isLast: () => isLast && !isAmongMachines,
    farewellMs: () => (isLast && isAmongMachines ? undefined : FAREWELL_MS),
    onReload: (reload) => void reloads.push(reload),
    answer(given) {
      answers = given
    },
    up: (news) => send({ kind: 'up', ...news }),
    leave: () => void worker.disconnect(),
  }
}

/** Among machines, each node has a port of its own for the others; else any will do. */
function ownConfig(config: Config, { number, secret }: Pick<NodeOrders, 'number' | 'secret'>): Config {
  const given = config.cluster
  const port = given.port === 0 ? 0 : given.port + number - 1
  const cluster = given.secret === undefined ? { ...given, secret, port: 0 } : { ...given, port }
  return Object.freeze({ ...config, cluster: Object.freeze(cluster) })
}
