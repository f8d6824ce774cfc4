import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { createHealth } from '../../src/cli/serve/health.ts'
import { StandByEnded } from '../../src/domain/cluster/join.ts'
import { createMetrics } from '../../src/domain/metrics.ts'
import { type ServerOptions, startServer } from '../../src/server.ts'
import { freePort } from './free-port.ts'

/** `npm run test:cluster` sets it: then each server that a test starts is two nodes, and each request goes to one of them by chance. */
export const IS_TWO_NODES = process.env.SERVERS_OF_TESTS === 'two nodes'

/** What makes a server the node of a cluster. */
export const OF_TWO_NODES = {
  cluster: { secret: 'a secret that the nodes of a test have', host: '127.0.0.1', port: 0 },
}

/** What makes it one alone. */
export const ALONE = { nodes: 1, host: '127.0.0.1', port: 0 }

export interface SecondNode {
  readonly port: number
  /** What operators are shown of it. */
  metrics(): Promise<string>
  stop(): Promise<void>
}

/** Starts a second node, which stands by for the one that these options started. */
export async function standBy(options: ServerOptions): Promise<SecondNode> {
  const port = await freePort()
  const { socket: _of_the_first_node, ...listen } = options.config.listen
  const leaving = new AbortController()
  const metrics = createMetrics({ version: options.version, node: '' })
  let ended: Promise<void> = Promise.resolve()
  await new Promise<void>((began, failed) => {
    ended = startServer({
      ...options,
      config: { ...options.config, listen: { ...listen, port } },
      certificate: undefined,
      metrics,
      health: createHealth(),
      log: pino({ level: 'error' }),
      standBy: { signal: leaving.signal, began },
    })
      .then((server) => server.close())
      .catch((error: unknown) => {
        if (!(error instanceof StandByEnded)) failed(error)
      })
  })
  return {
    port,
    metrics: metrics.text,
    async stop() {
      leaving.abort()
      await ended
    },
  }
}

/** The same beside the node that listens on this port; from then on the second one gets every second request. */
export async function standBeside(options: ServerOptions, port: number): Promise<SecondNode> {
  const second = await standBy(options)
  const share = shareRequests(await serverAt(port), await serverAt(second.port))
  return {
    port: second.port,
    metrics: second.metrics,
    async stop() {
      share.end()
      await second.stop()
    },
  }
}

/** The metrics of the node that serves, where what is told of held syncs is of both. */
export function metricsOfBoth(serving: string, other: string): string {
  return serving.replace(
    /^(hearth_(?:waiting_syncs|ended_syncs_total\S*)) (\d+)$/gm,
    (_line, name: string, count: string) => {
      const more = other.split('\n').find((line) => line.startsWith(`${name} `))
      return `${name} ${Number(count) + Number(more?.slice(name.length) ?? 0)}`
    },
  )
}

const SHARED = ['request', 'checkContinue'] as const

/** From now on, half of the requests that came to the one are handled by the other, whatever connection they came on. */
function shareRequests(one: Server, other: Server): { end(): void } {
  const before = SHARED.map((event) => [event, one.listeners(event) as RequestListener[]] as const)
  for (const [event, own] of before) {
    one.removeAllListeners(event)
    one.on(event, (request, response) => {
      if (Math.random() < 0.5) other.emit(event, request, response)
      else for (const listener of own) listener(request, response)
    })
  }
  return {
    end() {
      for (const [event, own] of before) {
        one.removeAllListeners(event)
        for (const listener of own) one.on(event, listener)
      }
    },
  }
}

/** The server of this process that listens there: it is asked, and watched. */
async function serverAt(port: number): Promise<Server> {
  let found: Server | undefined
  const watch = (message: unknown): void => {
    const { server } = message as { readonly server: Server }
    if ((server.address() as AddressInfo | null)?.port === port) found = server
  }
  subscribe('http.server.request.start', watch)
  try {
    await (await fetch(`http://127.0.0.1:${port}/health/live`)).text()
  } finally {
    unsubscribe('http.server.request.start', watch)
  }
  if (found === undefined) throw new Error(`no server of this process listens on port ${port}`)
  return found
}
