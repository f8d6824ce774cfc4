import { once } from 'node:events'
import { connect } from 'node:net'

/** A process that holds many long polls and does nothing else, until its parent lets go. */

export interface HoldTask {
  readonly host: string
  readonly port: number
  readonly polls: readonly HeldPoll[]
  /** How many to hold; the polls are taken in turn. */
  readonly count: number
  /** Whether it takes the answers; it does unless this says otherwise. */
  readonly isReading?: boolean
}

export interface HeldPoll {
  readonly token: string
  readonly path: string
  /** Of a POST. */
  readonly body?: string
}

const CONNECTING_AT_ONCE = 200

process.on('disconnect', () => process.exit(0))
process.once('message', (task: HoldTask) => {
  hold(task).then(
    () => process.send?.('held'),
    (error: Error) => {
      console.error(error.message)
      process.exit(1)
    },
  )
})

async function hold({ host, port, polls, count, isReading = true }: HoldTask): Promise<void> {
  for (let start = 0; start < count; start += CONNECTING_AT_ONCE) {
    const size = Math.min(CONNECTING_AT_ONCE, count - start)
    const sockets = Array.from({ length: size }, () => connect({ host, port }))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    sockets.forEach((socket, index) => {
      const { token, path, body = '' } = polls[(start + index) % polls.length]!
      const head = [
        `${body === '' ? 'GET' : 'POST'} ${path} HTTP/1.1`,
        `Host: ${host}:${port}`,
        `Authorization: Bearer ${token}`,
        ...(body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${body.length}`]),
      ]
      socket.on('error', () => undefined)
      if (isReading) socket.resume()
      else socket.pause()
      socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
    })
  }
}
