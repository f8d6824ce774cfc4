/** Loaded before the authorisation server, which is made of it. */
declare module 'koa'
