import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

interface Answer {
  readonly peer?: string
  readonly error?: string
  readonly answers?: readonly unknown[]
}

/** A process of another implementation, which answers one line of JSON with another. */
export class Peer {
  /** What it calls itself. */
  readonly name: string
  readonly #process: ChildProcess
  readonly #lines: AsyncIterator<string>

  private constructor(process: ChildProcess, lines: AsyncIterator<string>, name: string) {
    this.#process = process
    this.#lines = lines
    this.name = name
  }

  /** @param script a file beside this one */
  static async start(python: string, script: string): Promise<Peer> {
    const path = fileURLToPath(new URL(script, import.meta.url))
    const child = spawn(python, [path], { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const { peer } = await nextOf(lines)
    return new Peer(child, lines, peer ?? 'unknown')
  }

  async ask(question: object): Promise<readonly unknown[]> {
    this.#process.stdin!.write(`${JSON.stringify(question)}\n`)
    const { answers, error } = await nextOf(this.#lines)
    if (answers === undefined) throw new Error(`${this.name} failed: ${error}`)
    return answers
  }

  stop(): void {
    this.#process.stdin!.end()
  }
}

async function nextOf(lines: AsyncIterator<string>): Promise<Answer> {
  const { value, done } = await lines.next()
  if (done) throw new Error('the other implementation ended')
  return JSON.parse(value)
}
