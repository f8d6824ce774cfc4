import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { sharedNow } from '../measurement.ts'

/**
 * A process that is a push gateway. It takes what it is sent, and notes for whom and when the notifications of messages came that say when
 * they were sent: `at <milliseconds>`. It reads no more of HTTP and of JSON than that, because it runs on the cores that are measured.
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

const END_OF_HEAD = '\r\n\r\n'
const TAKEN = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15${END_OF_HEAD}{"rejected":[]}`,
)

/** The string that begins after a text. */
function stringAfter(text: string, before: string): string | undefined {
  const begin = text.indexOf(before)
  return begin < 0 ? undefined : text.slice(begin + before.length, text.indexOf('"', begin + before.length))
}

function heard(text: string): void {
  const at = stringAfter(text, '"body":"at ')
  const pushkey = stringAfter(text, '"pushkey":"')
  if (at === undefined || pushkey === undefined) return
  lastAt = sharedNow()
  if (delaysMs.length === 0) firstAt = lastAt
  const sent = Number(at)
  delaysMs.push(lastAt - sent)
  heardBy[pushkey] ??= []
  heardBy[pushkey].push([sent, lastAt])
  const body = `at ${at}`
  lastWords.set(body, (lastWords.get(body) ?? 0) + 1)
}

/** Takes the requests that are whole, and gives what is left. */
function take(socket: TLSSocket, bytes: Buffer): Buffer {
  let left = bytes
  for (;;) {
    const endOfHead = left.indexOf(END_OF_HEAD)
    if (endOfHead < 0) return left
    const head = left.toString('latin1', 0, endOfHead)
    const length = /^POST \/_matrix\/push\/v1\/notify HTTP\/1\.1\r\n(?:.*\r\n)?content-length: (\d+)/is.exec(head)?.[1]
    if (length === undefined) throw new Error(`the gateway does not understand ${JSON.stringify(head)}`)
    const begin = endOfHead + END_OF_HEAD.length
    const end = begin + Number(length)
    if (left.length < end) return left
    socket.write(TAKEN)
    heard(left.toString('utf8', begin, end))
    left = left.subarray(end)
  }
}

function start({ key, cert }: GatewayTask): void {
  const server = createServer({ key, cert }, (socket) => {
    let left: Buffer = Buffer.alloc(0)
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      left = take(socket, left.length === 0 ? chunk : Buffer.concat([left, chunk]))
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
