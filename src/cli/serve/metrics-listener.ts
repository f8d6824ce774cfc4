import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Config } from '../../config/schema.ts'
import type { Metrics } from '../../domain/metrics.ts'
import { listenAt } from '../../http/unix-socket.ts'
import { answerHealth, type Health } from './health.ts'

export interface MetricsListener {
  readonly port: number
  close(): void
}

/** A separate listener for metrics and health, which answers from the beginning of the start to the end of the stop. */
export async function startMetricsListener(
  options: Config['metrics'],
  metrics: Pick<Metrics, 'text'>,
  health: Pick<Health, 'whyNotReady'>,
): Promise<MetricsListener> {
  const make = () =>
    createServer((request, response) => {
      answer(request, response, metrics, health).catch(() => response.writeHead(500).end())
    })
  const server = make()
  await listen(server, options)
  const servers = [server]
  if (options.socket !== undefined) {
    const unix = make()
    await listenAt(unix, { path: options.socket, mode: options.socket_mode }, 'metrics.socket').catch((error) => {
      server.close()
      throw error
    })
    servers.push(unix)
  }
  for (const one of servers) one.unref()
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      for (const one of servers) one.close()
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  metrics: Pick<Metrics, 'text'>,
  health: Pick<Health, 'whyNotReady'>,
): Promise<void> {
  const path = (request.url ?? '').split('?', 1)[0] ?? ''
  if (path === '/metrics') {
    const text = await metrics.text()
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(text)
    return
  }
  const found = await answerHealth(health, path)
  const body = found?.body ?? { errcode: 'M_UNRECOGNIZED', error: 'There is only /metrics and /health here.' }
  response.writeHead(found?.status ?? 404, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function listen(server: Server, { host, port }: Config['metrics']): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(`metrics cannot listen on ${host}:${port} (${error.code}); see metrics.port`))
    })
    server.listen(port, host, resolve)
  })
}
