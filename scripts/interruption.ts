/** Rejects when somebody wants this to end: what was started is ended all the same. */
export function interruption(): Promise<never> {
  const wish = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => reject(new Error(`ended by ${signal}`)))
    }
  })
  wish.catch(() => {})
  return wish
}
