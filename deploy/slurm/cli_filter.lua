-- Asks Trimtab's agent on this host for the proven settings of an application that a job resembles, before sbatch, srun
-- or salloc submits the job. The values that the user has set win, and no submission fails because of this script: if
-- anything is wrong, the job goes unchanged. TRIMTAB_MATCH=off in the environment skips it, and TRIMTAB_MATCH=proven
-- allows proven settings only, no candidates of live studies.
--
-- install.sh puts this file in place. See README.md.

local SOCKET = "@SOCKET@"
local LIBRARY = "@FOLDER@/trimtab_match.so"
-- The longest time that a submission waits for the agent.
local MILLISECONDS = "@MILLISECONDS@"
local TITLE = "trimtab-match 1"
-- The names of the tools whose jobs are matched.
local KINDS = {sbatch = true, srun = true, salloc = true}

-- The options of salloc without a value, or whose value follows a "=".
local FLAGS = {}
for name in ([[bell contiguous exclusive get-user-env help hold immediate kill-command no-bell no-kill
   no-shell overcommit oversubscribe quiet reboot share spread-job usage use-min-nodes verbose
   version]]):gmatch("%S+") do
   FLAGS[name] = true
end
-- I, K, k and s may have a value in the same word.
local SHORT_FLAGS = "hHOQvV"
local OPTIONAL = {I = true, K = true, k = true, s = true}

-- the id of the submission that the agent has answered
local submission = nil

local function tell(text)
   slurm.log_info("trimtab: %s", text)
end

local function library(name)
   return assert(package.loadlib(LIBRARY, name))
end

-- Return the value of an option; nil if it is not set.
local function option(options, name)
   local value = options[name]
   if value == nil or value == "" or value == "unset" or value == "invalid-context" then
      return nil
   end
   return tostring(value)
end

local function escaped(value)
   return (value:gsub("\\", "\\\\"):gsub("\n", "\\n"))
end

local function plain(value)
   return (value:gsub("\\([\\n])", {["\\"] = "\\", n = "\n"}))
end

local function message(verb, pairs_)
   local lines = {TITLE .. " " .. verb}
   for _, pair in ipairs(pairs_) do
      lines[#lines + 1] = pair[1] .. " " .. escaped(pair[2])
   end
   lines[#lines + 1] = "end\n"
   return table.concat(lines, "\n")
end

-- Return the command of salloc, which Slurm 22.05 does not give to plug-ins.
local function command_of_salloc()
   local file = io.open("/proc/self/cmdline", "rb")
   local line = file and file:read("*a") or ""
   if file then
      file:close()
   end
   local found, skips, first = {}, false, true
   for word in line:gmatch("([^%z]*)%z") do
      if #found > 0 then
         found[#found + 1] = word
      elseif first or skips or word == ":" then
         first, skips = false, false
      elseif word:sub(1, 2) == "--" then
         skips = word ~= "--" and not word:find("=", 1, true) and not FLAGS[word:sub(3)]
      elseif word:sub(1, 1) == "-" then
         -- Short options without a value may stand together: -Qn 4.
         local last = word:match("^%-[" .. SHORT_FLAGS .. "]*(.*)$")
         skips = #last == 1 and not OPTIONAL[last]
      else
         found[1] = word
      end
   end
   return found
end

-- Return the words of a job's command: its script or program, and the arguments.
local function words(options, kind)
   if kind == "salloc" then
      return command_of_salloc()
   end
   local found = {}
   for number = 1, 10000 do
      local word = options.argv and options.argv[number]
      if word == nil then
         break
      end
      found[number] = tostring(word)
   end
   local wrapped = kind == "sbatch" and option(options, "wrap")
   if wrapped then
      for word in wrapped:gmatch("%S+") do
         found[#found + 1] = word
      end
   end
   return found
end

local function question(options, kind, argv)
   local program = (argv[1] or kind):match("[^/]+$") or kind
   local asked = {
      {"kind", kind},
      {"program", program},
      {"name", option(options, "job-name") or program},
      {"nodes", (option(options, "nodes") or "1"):match("^%d+") or "1"},
      {"cluster", tostring(slurm.CLUSTER_NAME or "")},
      {"partition", option(options, "partition") or ""},
      {"export", option(options, "export") or ""},
      {"time", option(options, "time") or ""},
      {"settings", os.getenv("TRIMTAB_MATCH") or ""},
      {"arg", kind},
   }
   for _, word in ipairs(argv) do
      asked[#asked + 1] = {"arg", word}
   end
   for name in library("trimtab_names")():gmatch("[^\n]+") do
      asked[#asked + 1] = {"present", name}
   end
   -- Slurm lists only the options that are set. A quotation mark within a value has a backslash before it.
   for name in slurm.json_cli_options(options):gmatch('[{,]"([%w-]+)":') do
      asked[#asked + 1] = {"option", name}
   end
   return message("ask", asked)
end

-- Return the lines of an answer as pairs; raise an error if it is not an answer.
local function parsed(answer)
   if answer:sub(1, #TITLE + 1) ~= TITLE .. "\n" then
      error("the answer is of another protocol", 0)
   end
   local found = {}
   for line in answer:sub(#TITLE + 2):gmatch("([^\n]*)\n") do
      local key, value = line:match("^(%S+) (.*)$")
      if key then
         found[#found + 1] = {key, plain(value)}
      elseif line ~= "end" then
         error("the answer is malformed", 0)
      end
   end
   return found
end

local function apply(options, answer)
   local set = library("trimtab_setenv")
   -- Everything is checked before anything is changed.
   local changes, note = {}, nil
   for _, pair in ipairs(answer) do
      local key, value = pair[1], pair[2]
      if key == "set" or key == "option" then
         local name, text = value:match("^([%w_-]+)=(.*)$")
         if not name then
            error("the answer is malformed", 0)
         end
         changes[#changes + 1] = {key, name, text}
      elseif key == "preload" or key == "comment" then
         changes[#changes + 1] = {key, value}
      elseif key == "note" then
         note = value
      elseif key == "error" then
         error(value, 0)
      elseif key == "submission" then
         if not value:match("^%x+$") then
            error("the answer is malformed", 0)
         end
         submission = value
      end
   end
   -- Slurm may refuse an option, so these come first.
   for _, change in ipairs(changes) do
      if change[1] == "option" then
         options[change[2]] = change[3]
      end
   end
   for _, change in ipairs(changes) do
      local key, value = change[1], change[2]
      if key == "set" then
         assert(set(value, change[3]))
      elseif key == "preload" then
         local own = os.getenv("LD_PRELOAD")
         assert(set("LD_PRELOAD", (own and own ~= "") and own .. ":" .. value or value))
      elseif key == "comment" then
         local own = option(options, "comment")
         options["comment"] = own and own .. " " .. value or value
      end
   end
   if note then
      tell(note)
   end
end

local function match(options, offset)
   local kind = tostring(options["type"])
   -- The first part of a heterogeneous job decides, because all parts share its environment.
   if not KINDS[kind] or offset ~= 0 or os.getenv("TRIMTAB_MATCH") == "off" then
      return
   end
   -- A step of a job inherits the settings of its job.
   if kind == "srun" and (option(options, "jobid") or os.getenv("SLURM_JOB_ID")) then
      return
   end
   local argv = words(options, kind)
   -- An interactive allocation runs as long as its user likes.
   if kind == "salloc" and #argv == 0 then
      return
   end
   -- There is no agent on most nodes. Opening a socket as a file fails in another way than a missing file.
   local _, _, code = io.open(SOCKET)
   if code == 2 then
      slurm.log_verbose("trimtab: %s does not exist; the job is submitted unchanged", SOCKET)
      return
   end
   local answer, reason = library("trimtab_ask")(SOCKET, question(options, kind, argv), MILLISECONDS)
   if answer == nil then
      error(reason, 0)
   end
   apply(options, parsed(answer))
end

function slurm_cli_setup_defaults(options, early_pass)
   return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
   local done, reason = pcall(match, options, offset)
   if not done then
      submission = nil
      pcall(tell, "the job is submitted unchanged: " .. tostring(reason))
   end
   return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
   if submission then
      local request = message("submitted", {{"submission", submission}, {"job_id", string.format("%d", job_id)}})
      submission = nil
      pcall(function() library("trimtab_ask")(SOCKET, request, MILLISECONDS) end)
   end
   return slurm.SUCCESS
end
