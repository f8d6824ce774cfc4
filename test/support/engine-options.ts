/** With what Node.js is to run, however the server is started (docs/deploying.md, "Options of Node.js"). */
export const ENGINE_OPTIONS = '--max-semi-space-size=32 --v8-pool-size=1'
