import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

/** A line of a network that can be cut, as by a broken switch: what is under way stays there, and nobody is told. */
export interface Cuttable {
  readonly port: number
  cut(): void
  /** What was under way goes on. */
  mend(): void
  close(): Promise<void>
}

export async function startCuttable(target: NetConnectOpts): Promise<Cuttable> {
  const port = await freePort()
  const ends = new Set<Socket>()
  /** Those that came while it was cut. */
  const knocking: Socket[] = []
  let isCut = false

  function keep(socket: Socket): void {
    ends.add(socket)
    // What ends on one side while the line is cut, the other one learns when it is mended.
    socket.on('error', () => {})
    socket.once('close', () => ends.delete(socket))
    if (isCut) socket.pause()
  }

  function lead(near: Socket): void {
    const far = connect(target)
    keep(far)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('data', (piece) => {
        if (!other.write(piece)) one.pause()
        if (isCut) one.pause()
      })
      other.on('drain', () => isCut || one.resume())
      one.once('close', () => other.destroySoon())
    }
  }

  const server = createServer({ pauseOnConnect: true }, (near) => {
    keep(near)
    if (isCut) knocking.push(near)
    else {
      lead(near)
      near.resume()
    }
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port,
    cut() {
      isCut = true
      for (const socket of ends) socket.pause()
    },
    mend() {
      isCut = false
      for (const near of knocking.splice(0)) if (!near.destroyed) lead(near)
      for (const socket of ends) socket.resume()
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of ends) socket.destroy()
      await closed
    },
  }
}
