import { connect, type Socket } from 'node:net'
import type { Json } from './api.ts'

/** A request that is written by hand, a piece at a time, on a connection of its own. */
export interface RawRequest {
  readonly socket: Socket
  send(bytes: string | Uint8Array): void
  /** The next answer, as soon as it is there whole. */
  answer(): Promise<RawAnswer>
  /** Resolves when the other side has ended the connection. */
  readonly ended: Promise<void>
}

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly body: Json
}

/** @param head the request line and the headers, `\n` between them */
export function openRequest(baseUrl: string, head = ''): RawRequest {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect({ host: hostname, port: Number(port) })
  let received = Buffer.alloc(0)
  let wake = (): void => {}
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
    wake()
  })
  socket.once('close', () => wake())
  const send = (bytes: string | Uint8Array) => void socket.write(bytes)
  if (head !== '') send(`${head.trim().replaceAll('\n', '\r\n')}\r\nhost: hs\r\n\r\n`)

  function take(): RawAnswer | undefined {
    const end = received.indexOf('\r\n\r\n')
    if (end === -1) return undefined
    const text = received.subarray(0, end).toString('latin1')
    const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0)
    if (received.length < end + 4 + length) return undefined
    const body = JSON.parse(received.subarray(end + 4, end + 4 + length).toString() || 'null')
    received = received.subarray(end + 4 + length)
    return { status: Number(text.split(' ')[1]), head: text, body }
  }

  async function answer(): Promise<RawAnswer> {
    for (;;) {
      const found = take()
      if (found) return found
      if (socket.destroyed) throw new Error('the connection ended without an answer')
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { socket, send, answer, ended }
}
