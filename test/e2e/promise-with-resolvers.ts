/** matrix-js-sdk wants `Promise.withResolvers`, which Node has from 22 on. Import this before it. */
interface WithResolvers {
  withResolvers?: <T>() => { promise: Promise<T>; resolve: (value: T) => void; reject: (reason: unknown) => void }
}

const target = Promise as unknown as WithResolvers
target.withResolvers ??= <T>() => {
  let resolve: (value: T) => void = () => undefined
  let reject: (reason: unknown) => void = () => undefined
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}
