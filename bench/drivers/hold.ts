import { once } from 'node:events'
import { connect } from 'node:net'

/** A process that holds many long polls and does nothing else, until its parent lets go. */

export interface HoldTask {
  readonly host: string
  readonly port: number
  readonly polls: readonly { readonly token: string; readonly path: string }[]
  /** How many to hold; the polls are taken in turn. */
  readonly count: number
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

async function hold({ host, port, polls, count }: HoldTask): Promise<void> {
  for (let start = 0; start < count; start += CONNECTING_AT_ONCE) {
    const size = Math.min(CONNECTING_AT_ONCE, count - start)
    const sockets = Array.from({ length: size }, () => connect({ host, port }))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    sockets.forEach((socket, index) => {
      const { token, path } = polls[(start + index) % polls.length]!
      socket.on('error', () => undefined).resume()
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`)
    })
  }
}
