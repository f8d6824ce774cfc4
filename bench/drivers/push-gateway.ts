import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { sharedNow } from '../measurement.ts'

/**
 * A process that is a push gateway. It takes what it is sent, and notes when the notifications of messages came that say when they were
 * sent: `at <milliseconds>`.
 */

export interface GatewayTask {
  readonly key: string
  readonly cert: string
}

export interface GatewayReady {
  readonly port: number
}

/** Resolves when so many dated notifications have come since the last report, or at the latest after five minutes. */
export interface GatewayCommand {
  readonly notifications: number
}

export interface GatewayReport {
  /** From sending to arrival. */
  readonly delaysMs: readonly number[]
  /** From the first of them to the last. */
  readonly spanMs: number
  readonly cpuMs: number
}

const LONGEST_WAIT_MS = 300_000
const LOOK_EVERY_MS = 20

let delaysMs: number[] = []
let firstAt = 0
let lastAt = 0
let cpuBefore = process.cpuUsage()

function heard(text: string): void {
  const { notification } = JSON.parse(text)
  const body: unknown = notification.content?.body
  if (typeof body !== 'string' || !body.startsWith('at ')) return
  lastAt = sharedNow()
  if (delaysMs.length === 0) firstAt = lastAt
  delaysMs.push(lastAt - Number(body.slice(3)))
}

function start({ key, cert }: GatewayTask): void {
  const server = createServer({ key, cert }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"rejected":[]}')
      heard(Buffer.concat(chunks).toString())
    })
  })
  server.listen(0, '127.0.0.1', () => {
    process.send?.({ port: (server.address() as AddressInfo).port } satisfies GatewayReady)
  })
}

async function report({ notifications }: GatewayCommand): Promise<void> {
  const latest = sharedNow() + LONGEST_WAIT_MS
  while (delaysMs.length < notifications && sharedNow() < latest) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
  const { user, system } = process.cpuUsage(cpuBefore)
  process.send?.({ delaysMs, spanMs: lastAt - firstAt, cpuMs: (user + system) / 1_000 } satisfies GatewayReport)
  cpuBefore = process.cpuUsage()
  delaysMs = []
}

process.on('disconnect', () => process.exit(0))
process.once('message', (task: GatewayTask) => {
  process.on('message', (command: GatewayCommand) => void report(command))
  start(task)
})
