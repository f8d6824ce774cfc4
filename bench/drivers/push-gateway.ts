import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { sharedNow } from '../measurement.ts'

/**
 * A process that is a push gateway. It takes what it is sent, and notes for whom and when the notifications of messages came that say when
 * they were sent: `at <milliseconds>`.
 */

export interface GatewayTask {
  readonly key: string
  readonly cert: string
}

export interface GatewayReady {
  readonly port: number
}

/** Answers when this has come since the last report, or at the latest after five minutes. */
export interface GatewayCommand {
  /** So many dated notifications. */
  readonly notifications?: number
  /** For so many push keys, a notification of a message that was sent then. */
  readonly lastAt?: { readonly sent: string; readonly pushkeys: number }
}

export interface GatewayReport {
  /** From sending to arrival. */
  readonly delaysMs: readonly number[]
  /** Of each push key: when the messages were sent that it was told of, and when it was told. */
  readonly heard: Readonly<Record<string, readonly (readonly [sent: number, heard: number])[]>>
  /** From the first of them to the last. */
  readonly spanMs: number
  readonly cpuMs: number
}

const LONGEST_WAIT_MS = 300_000
const LOOK_EVERY_MS = 20

let delaysMs: number[] = []
let heardBy: Record<string, [number, number][]> = {}
let lastWords = new Map<string, number>()
let firstAt = 0
let lastAt = 0
let cpuBefore = process.cpuUsage()

function heard(text: string): void {
  const { notification } = JSON.parse(text)
  const body: unknown = notification.content?.body
  if (typeof body !== 'string' || !body.startsWith('at ')) return
  lastAt = sharedNow()
  if (delaysMs.length === 0) firstAt = lastAt
  const sent = Number(body.slice(3))
  delaysMs.push(lastAt - sent)
  const [{ pushkey }] = notification.devices
  heardBy[pushkey] ??= []
  heardBy[pushkey].push([sent, lastAt])
  lastWords.set(body, (lastWords.get(body) ?? 0) + 1)
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

function isDone({ notifications = 0, lastAt: last }: GatewayCommand): boolean {
  if (last && (lastWords.get(last.sent) ?? 0) < last.pushkeys) return false
  return delaysMs.length >= notifications
}

async function report(command: GatewayCommand): Promise<void> {
  const latest = sharedNow() + LONGEST_WAIT_MS
  while (!isDone(command) && sharedNow() < latest) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
  const { user, system } = process.cpuUsage(cpuBefore)
  const cpuMs = (user + system) / 1_000
  process.send?.({ delaysMs, heard: heardBy, spanMs: lastAt - firstAt, cpuMs } satisfies GatewayReport)
  cpuBefore = process.cpuUsage()
  delaysMs = []
  heardBy = {}
  lastWords = new Map()
}

process.on('disconnect', () => process.exit(0))
process.once('message', (task: GatewayTask) => {
  process.on('message', (command: GatewayCommand) => void report(command))
  start(task)
})
