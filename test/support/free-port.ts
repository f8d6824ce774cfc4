import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below those that a system gives to connections and to who asks for any: one of these stays free until it is listened on. */
const PORTS = { from: 12_000, to: 32_000 }

const given = new Set<number>()

/** A port that nobody listens on. Of so many, others hardly take the same one before it is used. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to)
    if (given.has(port) || !(await isFree(port))) continue
    given.add(port)
    return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(error)
    })
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
