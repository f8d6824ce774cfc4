import type { Progress } from '../../domain/backup/make-backup.ts'
import type { Host } from '../command.ts'

const WIDTH = 30
/** On a terminal one line is written again and again; elsewhere a line from time to time. */
const TERMINAL_EVERY_MS = 200
const ELSEWHERE_EVERY_MS = 10_000

/** Shows how far something is. `clear` ends the line on a terminal. */
export function progressLine(host: Host): { readonly progress: Progress; clear(): void } {
  const begunAt = performance.now()
  let shownAt = begunAt
  let step = ''
  let isOpen = false
  const clear = () => {
    if (isOpen) host.draw('\r\x1b[K')
    isOpen = false
  }
  return {
    progress(now, done, of) {
      const at = performance.now()
      const everyMs = host.isTerminal ? TERMINAL_EVERY_MS : ELSEWHERE_EVERY_MS
      if (at - shownAt < everyMs && (now === step || !host.isTerminal)) return
      shownAt = at
      step = now
      const share = of === 0 ? 1 : Math.min(1, done / of)
      const text = `${now}: ${Math.floor(share * 100)}% of ${megabytes(of)}, ${Math.round((at - begunAt) / 1000)} s`
      if (!host.isTerminal) return host.complain(text)
      const full = Math.round(share * WIDTH)
      host.draw(`\r\x1b[K[${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}] ${text}`)
      isOpen = true
    },
    clear,
  }
}

export const megabytes = (bytes: number): string =>
  bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`
