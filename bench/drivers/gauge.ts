/** Loaded into a server that runs under `--expose-gc`: on SIGUSR2 it collects its garbage and says what is left. */
let asked = 0
process.on('SIGUSR2', () => {
  global.gc?.()
  global.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  asked += 1
  process.stderr.write(`live ${asked} ${heapUsed + external}\n`)
})
