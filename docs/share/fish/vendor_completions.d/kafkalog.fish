# Completion of kafkalog for fish: the program itself says what may follow.

function __kafkalog_complete
    set --local answer (env _KAFKALOG_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS=(commandline --cut-at-cursor --current-process | string collect) kafkalog 2>/dev/null)
    if test -n "$answer"
        printf '%s\n' $answer
    else
        __fish_complete_path (commandline --cut-at-cursor --current-token) # where the program knows nothing, a path is meant
    end
end

complete --command kafkalog --no-files --arguments '(__kafkalog_complete)'
